internal import NetwatchEventLoop
internal import OfflineQueue

/// A key of the configuration file: its documentation, and how its value is read.
struct Setting: Sendable {
    /// The tables of the key: `queue.limits`.
    let table: String
    let name: String
    /// The type of the values and the accepted values, for messages: `an integer from 1 to 65536`.
    let accepted: String
    /// What the key sets, as sentences.
    let help: String
    /// The default as TOML; an example if there is no default.
    let example: String
    let hasDefault: Bool
    /// Whether a reload changes the setting of a running service.
    var isReloadable = false
    /// Whether the value is a URL. A refused value may then contain a password in any place.
    var isURL = false
    /// Whether the value has hosts: as the keys of a table, or at the beginning of texts before a `=`.
    var hasHosts = false
    /// Stores a value; `nil` if the value is not accepted. Throws if that cannot be determined now.
    let apply: @Sendable (inout ServiceConfiguration, TOMLNode.Value) throws(SystemError) -> Void?

    var path: String { table.isEmpty ? name : "\(table).\(name)" }

    /// The environment variable that replaces the values of files: `NETWATCH_QUEUE_LIMITS_BYTES`.
    var variable: String {
        "NETWATCH_" + String(path.uppercased().map { $0 == "." || $0 == "-" ? "_" : $0 })
    }
}

// MARK: - Kinds of values

extension Setting {
    typealias Configuration = ServiceConfiguration
    typealias Path<Value> = any (WritableKeyPath<Configuration, Value> & Sendable)

    static func integer(
        _ table: String,
        _ name: String,
        _ range: ClosedRange<Int>,
        _ path: Path<Int>,
        _ help: String
    ) -> Setting {
        let top = range.upperBound == .max ? "an integer, \(range.lowerBound) or more" : nil
        return Setting(
            table: table,
            name: name,
            accepted: top ?? "an integer from \(range.lowerBound) to \(range.upperBound)",
            help: help,
            example: "\(defaults[keyPath: path])",
            hasDefault: true
        ) { configuration, value in
            guard case .integer(let number) = value, let number = Int(exactly: number), range.contains(number)
            else { return nil }
            configuration[keyPath: path] = number
            return ()
        }
    }

    static func duration(
        _ table: String,
        _ name: String,
        _ range: ClosedRange<Duration>,
        _ path: Path<Duration>,
        _ help: String
    ) -> Setting {
        Setting(
            table: table,
            name: name,
            accepted: durationForms(range),
            help: help,
            example: "\"\(DurationText.exact(defaults[keyPath: path]))\"",
            hasDefault: true
        ) { configuration, value in
            guard let duration = duration(value, in: range) else { return nil }
            configuration[keyPath: path] = duration
            return ()
        }
    }

    static func durationForms(_ range: ClosedRange<Duration>) -> String {
        "\(DurationText.forms), from \(DurationText.exact(range.lowerBound)) to \(DurationText.exact(range.upperBound))"
    }

    static func duration(_ value: TOMLNode.Value, in range: ClosedRange<Duration>) -> Duration? {
        guard case .string(let text) = value, let duration = DurationText.parse(text),
            range.contains(duration)
        else { return nil }
        return duration
    }

    /// A size from 1 byte on.
    static func size(_ table: String, _ name: String, _ path: Path<Int64>, _ help: String) -> Setting {
        Setting(
            table: table,
            name: name,
            accepted: ByteSizeText.acceptedForms,
            help: help,
            example: "\"\(ByteSizeText.exact(defaults[keyPath: path]))\"",
            hasDefault: true
        ) { configuration, value in
            switch value {
            case .integer(let bytes) where bytes > 0: configuration[keyPath: path] = bytes
            case .string(let text):
                guard let bytes = ByteSizeText.parse(text), bytes > 0 else { return nil }
                configuration[keyPath: path] = bytes
            default: return nil
            }
            return ()
        }
    }

    /// A number that is more than 0 and at most 1.
    static func share(_ table: String, _ name: String, _ path: Path<Double>, _ help: String) -> Setting {
        Setting(
            table: table,
            name: name,
            accepted: "a number that is more than 0 and at most 1",
            help: help,
            example: "\(defaults[keyPath: path])",
            hasDefault: true
        ) { configuration, value in
            let number: Double
            switch value {
            case .float(let value): number = value
            case .integer(let value): number = Double(value)
            default: return nil
            }
            guard number > 0, number <= 1 else { return nil }
            configuration[keyPath: path] = number
            return ()
        }
    }

    /// A text that another type parses.
    static func text(
        _ table: String,
        _ name: String,
        accepted: String,
        example: String,
        isDefault: Bool = false,
        _ help: String,
        _ apply: @escaping @Sendable (inout Configuration, String) -> Void?
    ) -> Setting {
        Setting(
            table: table,
            name: name,
            accepted: accepted,
            help: help,
            example: TOMLNode.Value.quoted(example),
            hasDefault: isDefault
        ) { configuration, value in
            guard case .string(let text) = value else { return nil }
            return apply(&configuration, text)
        }
    }

    /// An array of texts that another type parses.
    static func texts(
        _ table: String,
        _ name: String,
        accepted: String,
        _ help: String,
        _ apply: @escaping @Sendable (inout Configuration, [String]) throws(SystemError) -> Void?
    ) -> Setting {
        Setting(
            table: table,
            name: name,
            accepted: accepted,
            help: help,
            example: "[]",
            hasDefault: true
        ) { (configuration, value) throws(SystemError) in
            guard let texts = value.texts else { return nil }
            return try apply(&configuration, texts)
        }
    }

    /// An array of groups that exist on this machine.
    static func groups(_ name: String, _ path: Path<[SystemGroup]>, _ help: String) -> Setting {
        .texts(
            "access",
            name,
            accepted: "an array of names of existing groups; `getent group NAME` checks a name",
            help
        ) { (configuration, names) throws(SystemError) in
            var groups: [SystemGroup] = []
            for name in names {
                guard let group = try configuration.lookUpGroup(name) else { return nil }
                groups.append(group)
            }
            configuration[keyPath: path] = groups
            return ()
        }
    }

    /// A table of weights by name.
    static func weights(
        _ table: String,
        _ name: String,
        accepted: String = "a table of names and integers from \(SettingTable.weightForms)",
        _ help: String,
        _ apply: @escaping @Sendable (inout Configuration, [String: Int]) -> Void?
    ) -> Setting {
        Setting(
            table: table,
            name: name,
            accepted: accepted,
            help: help,
            example: "{}",
            hasDefault: true
        ) { configuration, value in
            guard case .table(let entries) = value else { return nil }
            var weights: [String: Int] = [:]
            for (key, node) in entries {
                guard case .integer(let number) = node.value, let weight = Int(exactly: number),
                    OfflineQueue.Configuration.Accepted.weights.contains(weight)
                else { return nil }
                weights[key] = weight
            }
            return apply(&configuration, weights)
        }
    }

    /// Statuses of responses.
    static func statuses(
        _ table: String,
        _ name: String,
        _ path: Path<[ClosedRange<Int>]>,
        _ help: String
    ) -> Setting {
        Setting(
            table: table,
            name: name,
            accepted: "\(StatusRanges.acceptedForm), or `\"\"` for none",
            help: help,
            example: "\"\"",
            hasDefault: true
        ) { configuration, value in
            guard let statuses = statuses(value) else { return nil }
            configuration[keyPath: path] = statuses
            return ()
        }
    }

    /// A table of statuses by name. Its values replace those of earlier files.
    ///
    /// - Parameter key: Returns the key that a name stands for; `nil` if the name is not accepted.
    static func statuses(
        _ table: String,
        _ name: String,
        of names: String,
        _ path: Path<[String: StatusRules]>,
        _ list: any (WritableKeyPath<StatusRules, [ClosedRange<Int>]> & Sendable),
        _ help: String,
        key: @escaping @Sendable (String) -> String? = { $0 }
    ) -> Setting {
        Setting(
            table: table,
            name: name,
            accepted: "a table of \(names), each with \(StatusRanges.acceptedForm)",
            help: help,
            example: "{}",
            hasDefault: true
        ) { configuration, value in
            guard case .table(let entries) = value else { return nil }
            var lists: [String: [ClosedRange<Int>]] = [:]
            for (name, node) in entries {
                guard let key = key(name), let statuses = statuses(node.value),
                    lists.updateValue(statuses, forKey: key) == nil
                else { return nil }
            }
            var rules = configuration[keyPath: path]
            for key in Set(rules.keys).union(lists.keys) {
                rules[key, default: StatusRules()][keyPath: list] = lists[key] ?? []
            }
            configuration[keyPath: path] = rules.filter { !$0.value.isEmpty }
            return ()
        }
    }

    /// Returns the statuses of a value: of a list as text, or a single number.
    private static func statuses(_ value: TOMLNode.Value) -> [ClosedRange<Int>]? {
        switch value {
        case .integer(let status): try? StatusRanges.parse("\(status)")
        case .string(""): []
        case .string(let text): try? StatusRanges.parse(text)
        default: nil
        }
    }

    private static let defaults = Configuration(stateDirectory: "", socket: "")

    func url() -> Setting {
        var setting = self
        setting.isURL = true
        return setting
    }

    func ofHosts() -> Setting {
        var setting = self
        setting.hasHosts = true
        return setting
    }

    func reloadable() -> Setting {
        var setting = self
        setting.isReloadable = true
        return setting
    }
}
