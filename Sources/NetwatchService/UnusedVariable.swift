internal import NetwatchEventLoop

/// An environment variable whose name begins with `NETWATCH_`, but which nothing reads.
package struct UnusedVariable: Hashable, Sendable, CustomStringConvertible {
    private static let prefix = "NETWATCH_"

    let name: String
    /// The variable with the most similar name; `nil` if none is similar.
    let similar: String?

    package var description: String {
        "the environment variable `\(name)` has no effect" + (similar.map { "; did you mean `\($0)`?" } ?? "")
    }

    /// Returns the unused variables of an environment, in the order of their names. An empty variable counts as unset.
    ///
    /// The programs of hooks inherit the variables of their alert, and may call `netwatch`. Kubernetes sets variables for
    /// each of its services, also for one that is called `netwatch`.
    static func all(in environment: [String: String]) -> [UnusedVariable] {
        let names = environment.filter { $0.key.hasPrefix(prefix) && !$0.value.isEmpty }.keys
        let used = Set(settable + [BootID.variable] + HookMessage.Variable.allCases.map(\.rawValue))
        return names.filter { !used.contains($0) && !isServiceLink($0) }.sorted().map { name in
            UnusedVariable(name: name, similar: similar(to: name))
        }
    }

    /// The variables that a user sets.
    private static let settable = ServicePaths.variables + SettingTable.settings.map(\.variable)

    /// Returns the variable that a name may stand for: the one of a key without its table, as the name of an option is,
    /// or else the one with the most similar name.
    private static func similar(to name: String) -> String? {
        let word = name.dropFirst(prefix.count)
        if let variable = settable.first(where: { $0.hasSuffix("_\(word)") }) { return variable }
        let names = settable.map { String($0.dropFirst(prefix.count)) }
        let begun = names.filter { word.hasPrefix($0) }.max { $0.count < $1.count }
        return (begun ?? NameSuggestion.name(for: String(word), among: names)).map { prefix + $0 }
    }

    /// Whether Kubernetes may have set a variable: `NETWATCH_SERVICE_HOST`, `NETWATCH_SERVICE_PORT_HTTP`,
    /// `NETWATCH_PORT`, `NETWATCH_PORT_80_TCP_ADDR`, and the same with a longer name of the service.
    private static func isServiceLink(_ name: String) -> Bool {
        let endings = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"]
        if endings.contains(where: { name.hasSuffix($0) }) { return true }
        let words = name.split(separator: "_")
        guard let port = words.lastIndex(of: "PORT"), port + 1 < words.count else { return false }
        if words[port - 1] == "SERVICE" { return true }
        return isNumberedPort(words)
    }

    /// Whether the words of a name contain `PORT`, a number and a protocol in succession.
    private static func isNumberedPort(_ words: [Substring]) -> Bool {
        words.indices.dropLast(2).contains { index in
            words[index] == "PORT" && UInt16(words[index + 1]) != nil
                && ["TCP", "UDP", "SCTP"].contains(words[index + 2])
        }
    }
}
