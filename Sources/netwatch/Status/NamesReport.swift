internal import NetwatchService

/// The part of the output of `netwatch status` that is about the resolver.
struct NamesReport {
    /// The maximum number of names in the output, so that all of it fits on a screen.
    private static let mostNames = 20

    let names: ControlMessage.Names

    /// The name servers, for how long they have been silent, and the number of lookups.
    var resolver: String {
        let servers = names.nameServersError ?? names.nameServers.joined(separator: " ")
        let silence = names.silentSeconds.map { "silent for \(format($0))" }
        let lookups =
            names.lookups > 0 ? "\(CountText.format(names.lookups, "lookup")) running" : nil
        let waiting =
            names.waiting > 0 ? "\(CountText.format(names.waiting, "lookup")) waiting" : nil
        return ([servers] + [silence, lookups, waiting].compactMap(\.self)).joined(separator: ", ")
    }

    /// One line per name; names with problems come first.
    var lines: [String] {
        let sorted = names.names.filter(\.hasFailure) + names.names.filter { !$0.hasFailure }
        let shown = sorted.prefix(Self.mostNames)
        let width = min(40, shown.map(\.name.count).max() ?? 0)
        let rest = names.count - shown.count
        return shown.map { line($0, width) } + (rest > 0 ? ["and \(rest) more"] : [])
    }

    private func line(_ name: ControlMessage.Names.Name, _ width: Int) -> String {
        let age = name.ageSeconds.map { " \(format($0)) ago" } ?? ""
        let silent = name.silent ? ", silent" : ""
        let what = name.addresses.isEmpty ? name.error : name.addresses.joined(separator: " ")
        return "\(name.name.padded(to: width))  \(name.state)\(age)\(silent)" + (what.map { "  \($0)" } ?? "")
    }

    private func format(_ seconds: Double) -> String { DurationText.format(.seconds(seconds)) }
}

extension ControlMessage.Names.Name {
    fileprivate var hasFailure: Bool { silent || state == "failed" || state == "stale" }
}
