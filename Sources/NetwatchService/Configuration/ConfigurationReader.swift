internal import ClientCore
internal import NetwatchEventLoop
internal import OfflineQueue

/// A fault of a configuration file or of an environment variable.
package struct ConfigurationProblem: Hashable, Sendable, CustomStringConvertible {
    /// The path of the file, or the name of the variable.
    package let source: String
    /// 0 if the fault has no position.
    package let line: UInt32
    package let column: UInt32
    package let message: String
    /// Whether the fault is not one of the source, but of the system, and may be temporary.
    package var isTemporary = false

    package var description: String {
        line == 0 ? "\(source): \(message)" : "\(source):\(line):\(column): \(message)"
    }
}

/// All faults of a configuration, in the order of the sources and of their lines.
package struct InvalidConfiguration: Error, Hashable, Sendable, CustomStringConvertible {
    package let problems: [ConfigurationProblem]
    /// Whether the same configuration may be accepted later.
    package let isTemporary: Bool
    /// The values without faults, which are not used either.
    let values: ConfigurationValues

    /// - Parameters:
    ///   - sources: The sources, in the order in which they are read. Faults of other sources come first.
    ///   - values: The values without faults. Default: none.
    init(
        _ problems: [ConfigurationProblem],
        inOrderOf sources: [String],
        values: ConfigurationValues = ConfigurationValues()
    ) {
        func place(_ problem: ConfigurationProblem) -> (Int, UInt32, UInt32) {
            (sources.firstIndex(of: problem.source) ?? -1, problem.line, problem.column)
        }
        self.problems = problems.sorted { place($0) < place($1) }
        isTemporary = problems.allSatisfy(\.isTemporary)
        self.values = values
    }

    /// The faults of a configuration, and then those of the one that should replace it.
    ///
    /// They are temporary if those of the replacement are.
    init(_ error: InvalidConfiguration, replacement: InvalidConfiguration) {
        problems = error.problems + replacement.problems
        isTemporary = replacement.isTemporary
        values = error.values
    }

    package var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Reads configuration files and environment variables into a configuration, and collects all faults.
struct ConfigurationReader {
    /// Where the value of a key comes from.
    struct Origin: Hashable, Sendable {
        /// The path of the file, or the name of the environment variable.
        let source: String
        /// `nil` for a variable.
        let position: TOMLPosition?
        /// The value as TOML.
        let text: String
        /// The value as TOML without the secrets of URLs.
        let shown: String

        /// The file with its line, or the variable.
        var place: String { position.map { "\(source):\($0.line)" } ?? source }
    }

    /// A table of an array of tables.
    struct ArrayTable: Sendable {
        /// What the table describes. The raw value is the key of the array.
        enum Kind: String, Sendable, CaseIterable {
            case host
            case hook
        }

        let kind: Kind
        let file: String
        let node: TOMLNode
        let entries: [(key: String, node: TOMLNode)]

        /// The file with the line of the table.
        var place: String { "\(file):\(node.position.line)" }
    }

    private static let settings = Dictionary(
        uniqueKeysWithValues: SettingTable.settings.map { ($0.path, $0) }
    )

    private(set) var configuration: ServiceConfiguration
    private(set) var problems: [ConfigurationProblem] = []
    /// By the path of the key.
    private(set) var origins: [String: Origin] = [:]
    /// The values of files that environment variables replace, as TOML, by the path of the key.
    private(set) var replacedValues: [String: String] = [:]
    /// See ``ConfigurationValues/faultyKeys``.
    private(set) var faultyKeys: Set<String>? = []
    /// The tables of all arrays, in the order of the files.
    private(set) var tables: [ArrayTable] = []
    /// The places of the hosts that have set the version of HTTP of an origin, by the text of the origin.
    private var versionPlaces: [String: String] = [:]
    /// What is being read: the path of a file, or the name of a variable.
    private var source = ""

    init(_ configuration: ServiceConfiguration) {
        self.configuration = configuration
    }

    /// Reads a file. Its values replace those of earlier files, and its hosts and hooks are added to theirs.
    ///
    /// - Parameter limit: The maximum number of bytes. Default: ``ConfigurationFiles/longestFile``.
    mutating func read(_ file: String, _ document: [UInt8], upTo limit: Int = ConfigurationFiles.longestFile)
    {
        source = file
        guard document.count <= limit else {
            faultyKeys = nil
            return report("the file has more than \(limit) bytes", at: nil)
        }
        do {
            if case .table(let entries) = try TOMLNode.parse(document).value { read(entries, in: "") }
        } catch {
            faultyKeys = nil
            let hint = UnquotedString(in: document, at: error.position).map { "; \($0.hint)" } ?? ""
            report("\(error.message)\(hint); the rest of this file was not checked", at: error.position)
        }
    }

    /// Reads the environment variables of the keys. Their values replace those of all files. An empty variable counts
    /// as unset.
    mutating func read(environment: [String: String]) {
        for setting in SettingTable.settings {
            guard let text = environment[setting.variable], !text.isEmpty else { continue }
            source = setting.variable
            replacedValues[setting.path] = origins[setting.path]?.text
            if let value = Self.value(text) {
                read(setting, value, at: nil)
            } else {
                faultyKeys?.insert(setting.path)
                let shown = RefusedText.withoutSecrets(text, isURL: setting.isURL)
                report("`\(shown)` is not a TOML value\(Self.advice(for: shown, of: setting))", at: nil)
            }
        }
    }

    /// Returns how a variable must be written, as the end of a sentence. A shell removes the quotes of a string, unless
    /// the string is quoted twice.
    private static func advice(for text: String, of setting: Setting) -> String {
        guard setting.example.hasPrefix("\"") else { return " like `\(setting.example)`" }
        return "; write `\(setting.variable)='\(TOMLNode.Value.quoted(text))'`"
    }

    /// Returns the value of a text in TOML; `nil` if the text is not exactly one value.
    private static func value(_ text: String) -> TOMLNode.Value? {
        let document = try? TOMLNode.parse(Array("value = \(text)".utf8))
        guard case .table(let entries)? = document?.value, entries.count == 1 else { return nil }
        return entries[0].node.value
    }

    /// Checks what several keys determine together, when all files and variables were read.
    mutating func finish() {
        let names = buildHosts()
        buildHooks(hosts: names)
        if configuration.queue.backoffCap < configuration.queue.backoffBase {
            let (base, cap) = (configuration.queue.backoffBase, configuration.queue.backoffCap)
            let message =
                "`queue.backoff-cap` is \(DurationText.exact(cap)); it must not be less than `queue.backoff-base`, which is "
                + DurationText.exact(base)
            report(message, from: origins["queue.backoff-cap"] ?? origins["queue.backoff-base"])
        }
        checkStatuses()
        checkPush()
        let access = configuration.access
        for (key, groups) in [
            ("access.submit-groups", access.submitGroups), ("access.read-groups", access.readGroups),
        ] {
            if let fault = access.fault(of: groups) { report("`\(key)`: \(fault)", from: origins[key]) }
        }
    }

    /// Checks that no status is both one after which requests are retried and one after which they are given up.
    private mutating func checkStatuses() {
        let queue = configuration.queue
        let hosts = queue.hostStatusRules.sorted { $0.key < $1.key }
        let lanes = queue.laneStatusRules.sorted { $0.key < $1.key }
        let rules =
            [("dead-statuses", "", queue.statusRules)]
            + hosts.map { ("host-dead-statuses", " of `\($0.key)`", $0.value) }
            + lanes.map { ("lane-dead-statuses", " of `\($0.key)`", $0.value) }
        for (key, place, rules) in rules {
            do throws(QueueError) { try rules.check() } catch {
                report("`queue.\(key)`\(place): \(error.message)", from: origins["queue.\(key)"])
            }
        }
    }

    /// Checks the push of metrics, in the same way as the webhook of a hook.
    private mutating func checkPush() {
        let push = configuration.metricsPush
        do throws(QueueError) {
            if let url = push.url { try RequestChecks.check(QueueRequest(method: "POST", url: url)) }
        } catch {
            report("`metrics.push-url`: \(error)", from: origins["metrics.push-url"])
        }
        do throws(QueueError) {
            if let name = push.credential { try CredentialName.check(name) }
        } catch {
            report("`metrics.push-credential`: \(error)", from: origins["metrics.push-credential"])
        }
    }

    /// Builds the hosts with the `[defaults]` of any file, and returns their names.
    private mutating func buildHosts() -> Set<String> {
        var places: [String: String] = [:]
        for table in tables where table.kind == .host {
            let host = HostTable(table.entries, defaults: configuration.hostDefaults)
            report(host.faults, in: table)
            if let name = host.name {
                if let first = places[name] {
                    let message =
                        "the host of `\(first)` has the same name, `\(name)`; set a different `name`"
                    report(message, at: table.node.position)
                }
                places[name] = places[name] ?? table.place
            }
            if let watched = host.host { add(watched, of: table) }
        }
        shareVersions()
        return Set(places.keys)
    }

    /// Sets the version of HTTP of hosts without one to that of another host with the same origin, because the version
    /// belongs to the origin.
    private mutating func shareVersions() {
        let versions = configuration.queue.httpVersions
        for index in configuration.hosts.indices where configuration.hosts[index].httpVersion == nil {
            guard case .web = configuration.hosts[index].check else { continue }
            let origins = configuration.hosts[index].origins
            configuration.hosts[index].httpVersion = origins.lazy.compactMap { versions[$0] }.first
        }
    }

    /// Adds a host, and the version of HTTP that the queue uses for its origin.
    private mutating func add(_ host: WatchedHost, of table: ArrayTable) {
        configuration.hosts.append(host)
        guard let version = host.httpVersion else { return }
        for origin in host.origins {
            let other = configuration.queue.httpVersions.updateValue(version, forKey: origin)
            let place = versionPlaces.updateValue(table.place, forKey: "\(origin)")
            guard let other, let place, other != version else { continue }
            let message =
                "`http-version` is \"\(version.rawValue)\", but \"\(other.rawValue)\" for the host of `\(place)`, which "
                + "also has the origin \(origin); set the same value, because it also applies to the queue's requests"
            report([TableEntries.Fault(key: "http-version", message: message)], in: table)
        }
    }

    private mutating func buildHooks(hosts names: Set<String>) {
        for table in tables where table.kind == .hook {
            let hook = HookTable(table.entries, hosts: names)
            report(hook.faults, in: table)
            if let hook = hook.hook { configuration.hooks.append(hook) }
        }
    }

    // MARK: Tables

    private mutating func read(_ entries: [(key: String, node: TOMLNode)], in table: String) {
        for (key, node) in entries {
            let path = table.isEmpty ? key : "\(table).\(key)"
            if let setting = Self.settings[path] {
                read(setting, node.value, at: node.position)
            } else if let kind = ArrayTable.Kind(rawValue: path) {
                readTables(of: kind, node)
            } else if Self.isTable(path) {
                guard case .table(let entries) = node.value else {
                    faultyKeys = nil
                    report("`\(path)` is \(node.value.kind); it must be a table", at: node.position)
                    continue
                }
                read(entries, in: path)
            } else {
                if node.value.mayContainKeys { faultyKeys = nil }
                let prefix = table.isEmpty ? "" : "[\(table)]: "
                report(prefix + UnknownName.message(key, accepted: Self.names(in: table)), at: node.position)
            }
        }
    }

    private mutating func read(_ setting: Setting, _ value: TOMLNode.Value, at position: TOMLPosition?) {
        do throws(SystemError) {
            guard try setting.apply(&configuration, value) != nil else {
                let shown = value.refusedText(isURL: setting.isURL)
                let advice = (setting.hasHosts ? value.adviceOnHosts : nil).map { "; \($0)" } ?? ""
                let message = "`\(setting.path)` is \(shown); it must be \(setting.accepted)\(advice)"
                faultyKeys?.insert(setting.path)
                return report(message, at: position)
            }
        } catch {
            let message = "`\(setting.path)` cannot be checked now: \(error)"
            faultyKeys?.insert(setting.path)
            return report(message, at: position, isTemporary: true)
        }
        origins[setting.path] = Origin(
            source: source,
            position: position,
            text: value.text,
            shown: value.textWithoutSecrets
        )
    }

    private mutating func readTables(of kind: ArrayTable.Kind, _ node: TOMLNode) {
        let name = kind.rawValue
        guard case .array(let nodes) = node.value else {
            faultyKeys?.insert(name)
            return report(
                "`\(name)` is \(node.value.kind); write each \(name) as a table `[[\(name)]]`",
                at: node.position
            )
        }
        for node in nodes {
            guard case .table(let entries) = node.value else {
                faultyKeys?.insert(name)
                report(
                    "a \(name) is \(node.value.kind); write each \(name) as a table `[[\(name)]]`",
                    at: node.position
                )
                continue
            }
            tables.append(ArrayTable(kind: kind, file: source, node: node, entries: entries))
        }
    }

    private static func isTable(_ path: String) -> Bool {
        settings.values.contains { $0.table == path || $0.table.hasPrefix(path + ".") }
    }

    /// The names of the keys and tables in a table.
    private static func names(in table: String) -> [String] {
        let prefix = table.isEmpty ? "" : table + "."
        let names = settings.keys.filter { $0.hasPrefix(prefix) }.map { path in
            String(path.dropFirst(prefix.count).prefix { $0 != "." })
        }
        let arrays = table.isEmpty ? ArrayTable.Kind.allCases.map(\.rawValue) : []
        return Set(names + arrays).sorted()
    }

    private mutating func report(_ faults: [TableEntries.Fault], in table: ArrayTable) {
        source = table.file
        for fault in faults {
            let position = table.entries.first { $0.key == fault.key }?.node.position ?? table.node.position
            report("\(table.kind.rawValue): \(fault.message)", at: position)
        }
    }

    private mutating func report(_ message: String, from origin: Origin?) {
        source = origin?.source ?? source
        report(message, at: origin?.position)
    }

    private mutating func report(
        _ message: String,
        at position: TOMLPosition?,
        isTemporary: Bool = false
    ) {
        problems.append(
            ConfigurationProblem(
                source: source,
                line: position?.line ?? 0,
                column: position?.column ?? 0,
                message: message,
                isTemporary: isTemporary
            )
        )
    }
}

extension TOMLNode.Value {
    /// Whether the value is a table or an array, which may be a table with a wrong name.
    fileprivate var mayContainKeys: Bool {
        switch self {
        case .table, .array: true
        default: false
        }
    }
}
