/// A line of the table: the results of all rounds for one figure, of netwatch and of one compared program.
struct Row {
    let figure: Figure
    /// netwatch's results.
    let ours: [Double]
    /// The name and the results of the compared program; `nil` if there is none.
    var other: (name: String, values: [Double])?
    /// Whether this is the first compared program of the figure.
    var isFirst = true

    /// netwatch's result divided by the other program's, for each round.
    var ratios: [Double] {
        zip(ours, other?.values ?? []).map { $0 / $1 }
    }

    /// The targets that refer to this compared program, and whether netwatch meets them.
    private var aims: [(text: String, isMet: Bool)] {
        figure.aims.filter { $0.other.map { $0 == other?.name } ?? isFirst }.map { aim in
            (aim.text(other?.name), aim.isMet(ours: ours, others: other?.values ?? []))
        }
    }
}

extension Row {
    static let head = columns([
        "", "ours min", "median", "other min", "median", "ratio min", "median", "compared with", "aim",
    ])

    var text: String {
        let verdict = aims.map { "\($0.text)\($0.isMet ? "" : "  MISSED")" }.joined(separator: ", ")
        // netwatch's results are the same in all rows of a figure, so only the first row shows them.
        let values = [isFirst ? ours : [], other?.values ?? [], ratios].flatMap { values in
            values.isEmpty ? ["", ""] : [number(values.min()!), number(median(values))]
        }
        let label = isFirst ? "\(figure.name) \(figure.unit)" : ""
        return Self.columns([label] + values + [other?.name ?? "", verdict])
    }

    private static func columns(_ cells: [String]) -> String {
        // Names are left-aligned, numbers right-aligned.
        let widths = [-26, 10, 10, 10, 10, 10, 10, -19, 0]
        let padded = zip(cells, widths).map { cell, width in
            let padding = String(repeating: " ", count: max(0, abs(width) - cell.count))
            return width > 0 ? padding + cell : cell + padding
        }
        return padded.prefix(7).joined() + "  " + padded.suffix(2).joined()
    }

    var json: String {
        let fields = [
            #""figure": "\#(figure.name)""#, #""unit": "\#(figure.unit)""#, #""ours": \#(ours)"#,
            other.map { #""beside": "\#($0.name)", "other": \#($0.values)"# },
            other.map { _ in #""medianRatio": \#(median(ratios))"# },
            aims.first.map { #""aim": "\#($0.text)", "isAimMet": \#($0.isMet)"# },
        ]
        return "{" + fields.compactMap(\.self).joined(separator: ", ") + "}"
    }
}

/// Formats a number with about three digits.
func number(_ value: Double) -> String {
    let scale: Double = value < 10 ? 100 : value < 100 ? 10 : 1
    let rounded = (value * scale).rounded() / scale
    return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
}
