/// What all rounds gave for one figure, ours and one other.
struct Row {
    let figure: Figure
    let ours: [Double]
    /// Who the other is, and what it gave; `nil` where there is nothing to compare with.
    var other: (name: String, values: [Double])?
    /// Whether the other is the first beside ours.
    var isFirst = true

    var ratios: [Double] {
        zip(ours, other?.values ?? []).map { $0 / $1 }
    }

    /// What is wanted of ours beside this other.
    private var aims: [(text: String, isMet: Bool)] {
        figure.aims.filter { $0.other.map { $0 == other?.name } ?? isFirst }.map { aim in
            (aim.text(other?.name), aim.isMet(ours: ours, others: other?.values ?? []))
        }
    }
}

extension Row {
    static let head = columns([
        "", "ours min", "median", "other min", "median", "ratio min", "median", "beside", "aim",
    ])

    var text: String {
        let verdict = aims.map { "\($0.text)\($0.isMet ? "" : "  MISSED")" }.joined(separator: ", ")
        // Ours stands in the first of a figure's rows.
        let values = [isFirst ? ours : [], other?.values ?? [], ratios].flatMap { values in
            values.isEmpty ? ["", ""] : [number(values.min()!), number(median(values))]
        }
        let label = isFirst ? "\(figure.name) \(figure.unit)" : ""
        return Self.columns([label] + values + [other?.name ?? "", verdict])
    }

    private static func columns(_ cells: [String]) -> String {
        // Names to the left, numbers to the right.
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

/// With three digits, more or less.
func number(_ value: Double) -> String {
    let scale: Double = value < 10 ? 100 : value < 100 ? 10 : 1
    let rounded = (value * scale).rounded() / scale
    return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
}
