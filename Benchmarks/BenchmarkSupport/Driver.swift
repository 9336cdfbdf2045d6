internal import Glibc

/// Runs series and prints their tables. Each measurement is a separate process. Those of netwatch and of the compared
/// programs alternate, so that all run under the same conditions.
package struct Driver {
    /// The directory of the compiled floors: minimal C programs that are the lower bound for a figure.
    let floors: String
    /// The command that is put before each measurement, for example `unshare --net`. Empty if there is none.
    let enclosure: String
    /// The path of the file to write.
    let json: String
    /// The directory on the disk whose sync time is measured before and after each series. `nil` for no such
    /// measurement.
    let probed: String?

    package init(floors: String, enclosure: String, json: String, probed: String? = nil) {
        self.floors = floors
        self.enclosure = enclosure
        self.json = json
        self.probed = probed
    }

    package func run(_ all: [Series]) {
        let loadBefore = loadAverage
        let results = all.map(result)
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

    /// The three load averages, which show how busy the machine was.
    private var loadAverage: String {
        contents(ofCommand: "cut -d ' ' -f 1-3 /proc/loadavg")
    }

    /// Runs a series and prints its table. Returns its results as JSON.
    private func result(of series: Series) -> String {
        print("\n\(series.title)")
        fflush(nil)
        for preparation in series.preparations { shell(preparation) }
        let before = probed.map(SyncProbe.init)
        let outcome = run(series)
        let after = probed.map(SyncProbe.init)
        if let before, let after { print("4 KiB synced: before \(before.text); after \(after.text)") }
        print(Row.head)
        for row in outcome.rows { print(row.text) }
        for name in outcome.missing { print("\(name) was not measured: it is not installed, or it fails") }
        fflush(nil)
        let fields = [
            #""title": "\#(series.title)""#,
            before.map { #""syncBefore": \#($0.json)"# }, after.map { #""syncAfter": \#($0.json)"# },
            outcome.missing.isEmpty ? nil : #""missing": \#(outcome.missing)"#,
            "\"rows\": [\n      \(outcome.rows.map(\.json).joined(separator: ",\n      "))\n    ]",
        ]
        return "    {" + fields.compactMap(\.self).joined(separator: ", ") + "}"
    }

    private func run(_ series: Series) -> (rows: [Row], missing: [String]) {
        var ours: [[String: Double]] = []
        var others = [[[String: Double]]](repeating: [], count: series.others.count)
        for _ in 0..<series.rounds {
            ours.append(measure(.measurement(series.ours), series))
            for (index, other) in series.others.enumerated() {
                let figures = measure(other.command, series)
                if !figures.isEmpty { others[index].append(figures) }
            }
        }
        let found = zip(series.others, others).filter { !$1.isEmpty }
        let missing = zip(series.others, others).filter { $1.isEmpty }
        let table = series.figures.flatMap { rows(of: $0, ours, found.map { ($0.name, $1) }) }
        return (table, missing.map(\.0.name))
    }

    /// Returns a row for each compared program that reports the figure. If none reports it, returns a single row with
    /// only netwatch's results.
    private func rows(
        of figure: Figure,
        _ ours: [[String: Double]],
        _ others: [(name: String, rounds: [[String: Double]])]
    ) -> [Row] {
        let ours = ours.map { $0[figure.name]! }
        let rows = others.enumerated().compactMap { index, other -> Row? in
            let values = other.rounds.compactMap { $0[figure.name] }
            guard !values.isEmpty else { return nil }
            return Row(figure: figure, ours: ours, other: (other.name, values), isFirst: index == 0)
        }
        return rows.isEmpty ? [Row(figure: figure, ours: ours)] : rows
    }

    /// Returns the figures that a command prints. A third-party program may fail, for example because it is not
    /// installed; it then has no figures. If any other command fails, the process terminates.
    private func measure(_ command: Series.Other.Command, _ series: Series) -> [String: Double] {
        let environment = series.environment.isEmpty ? [] : ["env"] + series.environment
        let words = ["exec"] + environment + [enclosure, text(of: command)]
        let output = output(ofCommand: words.joined(separator: " "))
        if output == nil, !command.mayBeMissing { fatalError("failed: \(words.joined(separator: " "))") }
        let figures = (output ?? "").split(separator: "\n").map { $0.split(separator: " ") }
        return Dictionary(uniqueKeysWithValues: figures.map { (String($0[0]), Double($0[1])!) })
    }

    private func text(of command: Series.Other.Command) -> String {
        switch command {
        case .floor(let arguments):
            return "\(floors)/\(arguments)"
        case .program(let command):
            return command
        case .measurement(let arguments):
            let words = arguments.split(separator: " ").map { word in
                word.hasPrefix("FLOORS/") ? floors + word.dropFirst("FLOORS".count) : String(word)
            }
            return "\(CommandLine.arguments[0]) measure \(words.joined(separator: " "))"
        }
    }

    private func write(_ text: String) {
        guard let file = fopen(json, "we"), fputs(text, file) >= 0, fclose(file) == 0 else {
            fatalError("cannot write \(json)")
        }
        print("\nwritten to \(json)")
    }
}
