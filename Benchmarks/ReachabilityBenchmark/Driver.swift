internal import Glibc

/// Runs every series, each measurement in a network namespace of its own, ours and the other in turn, so that
/// both see the same machine.
struct Driver {
    /// Where the floors were built, and the script that makes the network.
    let floors: String
    let network: String
    let json: String

    func run(_ all: [Series]) {
        let loadBefore = loadAverage
        var results: [String] = []
        for series in all {
            print("\n\(series.title)\n\(Row.head)")
            let rows = run(series)
            for row in rows { print(row.text) }
            fflush(nil)
            let list = rows.map(\.json).joined(separator: ",\n      ")
            results.append("    {\"title\": \"\(series.title)\", \"rows\": [\n      \(list)\n    ]}")
        }
        write(
            """
            {
              "machine": "\(contents(ofCommand: "uname -srm")), \(contents(ofCommand: "nproc")) processors",
              "loadBefore": "\(loadBefore)", "loadAfter": "\(loadAverage)",
              "series": [
            \(results.joined(separator: ",\n"))
              ]
            }

            """
        )
    }

    /// What else the machine was doing.
    private var loadAverage: String {
        contents(ofCommand: "cut -d ' ' -f 1-3 /proc/loadavg")
    }

    private func run(_ series: Series) -> [Row] {
        var (ours, others): ([[String: Double]], [[String: Double]]) = ([], [])
        for _ in 0..<series.rounds {
            ours.append(measure("\(CommandLine.arguments[0]) measure \(series.ours)"))
            if let other = series.other { others.append(measure(command(other))) }
        }
        return series.figures.map { figure in
            Row(figure: figure, ours: ours.map { $0[figure.name]! }, others: others.map { $0[figure.name]! })
        }
    }

    private func command(_ other: Series.Other) -> String {
        switch other {
        case .floor(let arguments):
            return "\(floors)/\(arguments)"
        case .peer(let arguments):
            let words = arguments.split(separator: " ").map { word in
                word.hasPrefix("FLOORS/") ? floors + word.dropFirst("FLOORS".count) : String(word)
            }
            return "\(CommandLine.arguments[0]) measure \(words.joined(separator: " "))"
        }
    }

    /// The figures that a command prints.
    private func measure(_ command: String) -> [String: Double] {
        let lines = contents(ofCommand: "exec unshare --net \(network) \(command)").split(separator: "\n")
        let figures = lines.map { $0.split(separator: " ") }.map { (String($0[0]), Double($0[1])!) }
        return Dictionary(uniqueKeysWithValues: figures)
    }

    private func write(_ text: String) {
        guard let file = fopen(json, "we"), fputs(text, file) >= 0, fclose(file) == 0 else {
            fatalError("cannot write \(json)")
        }
        print("\nwritten to \(json)")
    }
}
