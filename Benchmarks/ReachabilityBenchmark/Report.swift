/// What all rounds gave for one figure.
struct Row {
    let figure: Figure
    let ours: [Double]
    /// Empty where there is nothing to compare with.
    let others: [Double]

    var ratios: [Double] {
        zip(ours, others).map { $0 / $1 }
    }

    /// Whether the aim is met, round by round in the middle; `nil` when there is none.
    var isAimMet: Bool? {
        guard let aim = figure.aim else { return nil }
        let bounds = others.isEmpty ? ours.map { _ in aim.plus } : others.map { aim.factor * $0 + aim.plus }
        return median(zip(ours, bounds).map { $0 - $1 }) <= 0
    }
}

extension Row {
    static let head = columns([
        "", "ours min", "median", "other min", "median", "ratio min", "median", "aim",
    ])

    var text: String {
        let verdict = isAimMet.map { "\(figure.aim!.text)\($0 ? "" : "  MISSED")" } ?? ""
        let values = [ours, others, ratios].flatMap { values in
            values.isEmpty ? ["", ""] : [number(values.min()!), number(median(values))]
        }
        return Self.columns(["\(figure.name) \(figure.unit)"] + values + [verdict])
    }

    private static func columns(_ cells: [String]) -> String {
        let widths = [34, 10, 10, 10, 10, 10, 10]
        let padded = zip(cells, widths).enumerated().map { index, cell in
            let padding = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
            return index == 0 ? cell.0 + padding : padding + cell.0
        }
        return padded.joined() + "  " + cells.dropFirst(widths.count).joined()
    }

    var json: String {
        let fields = [
            #""figure": "\#(figure.name)""#, #""unit": "\#(figure.unit)""#, #""ours": \#(ours)"#,
            others.isEmpty ? nil : #""other": \#(others)"#,
            others.isEmpty ? nil : #""medianRatio": \#(median(ratios))"#,
            figure.aim.map { #""aim": "\#($0.text)""# }, isAimMet.map { #""isAimMet": \#($0)"# },
        ]
        return "{" + fields.compactMap(\.self).joined(separator: ", ") + "}"
    }
}

/// With three digits, more or less.
private func number(_ value: Double) -> String {
    let scale: Double = value < 10 ? 100 : value < 100 ? 10 : 1
    let rounded = (value * scale).rounded() / scale
    return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
}
