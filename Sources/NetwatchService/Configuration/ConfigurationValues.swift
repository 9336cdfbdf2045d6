/// The values that configuration files and environment variables set, as TOML. Keys with their defaults are missing.
package struct ConfigurationValues: Hashable, Sendable {
    /// The values by the paths of their keys, such as `queue.inflight`. `host` and `hook` contain all tables of these
    /// arrays.
    var texts: [String: String] = [:]
    /// The values of files that environment variables replace, by the paths of their keys.
    var replaced: [String: String] = [:]
    /// The files that were read.
    var files: [String] = []
    /// The keys whose values have faults; `nil` if a part of a file could not be read or assigned, which may set
    /// any key.
    var faultyKeys: Set<String>? = []

    package init() {}

    /// All keys, in the order of the default file.
    static let keys =
        SettingTable.settings.map(\.path) + ConfigurationReader.ArrayTable.Kind.allCases.map(\.rawValue)

    /// Returns the keys whose values differ, in the order of the default file.
    func keys(differingFrom other: ConfigurationValues) -> [String] {
        Self.keys.filter { texts[$0] != other.texts[$0] }
    }

    /// Returns whether it is known what a key is set to, or that nothing sets it.
    func isKnown(_ key: String) -> Bool { texts[key] != nil || faultyKeys?.contains(key) == false }

    /// The values as one configuration file.
    var document: String {
        var text = "", table = ""
        for setting in SettingTable.settings {
            guard let value = texts[setting.path] else { continue }
            if setting.table != table {
                table = setting.table
                text += "[\(table)]\n"
            }
            text += "\(setting.name) = \(value)\n"
        }
        return text + ConfigurationReader.ArrayTable.Kind.allCases.compactMap { texts[$0.rawValue] }.joined()
    }
}

extension ConfigurationReader {
    /// What was read so far.
    var values: ConfigurationValues {
        var values = ConfigurationValues()
        values.texts = origins.mapValues(\.text)
        for table in tables { values.texts[table.kind.rawValue, default: ""] += table.text }
        values.replaced = replacedValues
        values.faultyKeys = faultyKeys
        return values
    }
}

extension ConfigurationReader.ArrayTable {
    /// The table as TOML.
    fileprivate var text: String {
        let lines = entries.map { "\(TOMLNode.Value.key($0.key)) = \($0.node.value.text)\n" }
        return "[[\(kind.rawValue)]]\n" + lines.joined()
    }
}
