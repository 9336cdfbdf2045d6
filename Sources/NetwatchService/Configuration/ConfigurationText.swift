internal import NetwatchEventLoop

/// Configuration files as text.
package enum ConfigurationText {
    /// The default file: every key with its documentation, and with its default in a comment.
    package static var defaultFile: String {
        var text = """
            ## The configuration of `netwatch serve`. Lines with one `#` show the defaults, or examples for keys without a
            ## default. `netwatch config check` checks this file, `systemctl reload netwatch` applies it. Drop-ins in
            ## netwatch.toml.d/*.toml are read after it. Environment variables such as NETWATCH_QUEUE_INFLIGHT replace the
            ## values of files.

            """
        var table = ""
        for setting in SettingTable.settings {
            if setting.table != table {
                table = setting.table
                text += "\n[\(table)]\n"
            }
            text += "\n" + comment(setting) + "#\(setting.name) = \(setting.example)\n"
        }
        return text + "\n" + hostExample + "\n" + hookExample
    }

    private static func comment(_ setting: Setting) -> String {
        let restart = setting.isReloadable ? "" : " A change needs a restart."
        return wrapped("\(setting.help)\(restart) Accepted: \(setting.accepted).")
    }

    private static func wrapped(_ text: String) -> String {
        var lines = [""]
        for word in text.split(separator: " ") {
            if lines[lines.count - 1].count + word.count > 110 { lines.append("") }
            lines[lines.count - 1] += lines[lines.count - 1].isEmpty ? String(word) : " " + word
        }
        return lines.map { "## \($0)\n" }.joined()
    }

    private static let hostExample = """
        ## A host to watch; repeat the table for each. It has one of `url`, `tcp` and `route`. `interval`, `timeout`,
        ## `fall` and `rise` replace the values of [defaults]. Default of `name`: the host of the URL, or the address.
        #[[host]]
        #name = "api"
        #url = "https://api.example.com/healthz"
        #expect-status = "200-299"
        #http-version = "2"

        #[[host]]
        #tcp = "db.example.com:5432"
        #interval = "10s"

        #[[host]]
        #route = "192.0.2.1"

        """

    private static let hookExample = """
        ## What to do when a host goes down and when it is up again; repeat the table for each hook. It has one of
        ## `webhook` (a URL that receives a POST request with a JSON object) and `program`. `hosts` limits it to these
        ## hosts. `on` limits it to "down" or "up". `causes` is ["remote"] by default; with "local", it also reports
        ## outages of this machine's own link. The first change waits for `group-wait`, 0s to 1h, and is reported with
        ## all others until then.
        #[[hook]]
        #webhook = "https://alerts.example.com/netwatch"
        #credential = "alerts"
        #causes = ["local", "remote"]
        #group-wait = "30s"

        #[[hook]]
        #program = "/usr/local/bin/host-changed"
        #arguments = ["--verbose"]
        #timeout = "30s"
        #hosts = ["api"]
        #on = ["down"]

        """

    /// The effective configuration, with the origin of each value and without the secrets of URLs.
    package static func effective(_ result: ConfigurationFiles.Result) -> String {
        var text = "", table = ""
        for setting in SettingTable.settings {
            let origin = result.origins[setting.path]
            guard origin != nil || setting.hasDefault else { continue }
            if setting.table != table {
                text += table.isEmpty ? "" : "\n"
                table = setting.table
                text += "[\(table)]\n"
            }
            let source = origin?.place ?? "default"
            text += "\(setting.name) = \(origin?.shown ?? setting.example)  # \(source.printable)\n"
        }
        for kind in ConfigurationReader.ArrayTable.Kind.allCases {
            for table in result.tables where table.kind == kind {
                text += "\n[[\(kind.rawValue)]]  # \(table.file.printable):\(table.node.position.line)\n"
                text += lines(of: table.node.value.textWithoutSecrets)
            }
        }
        return text
    }

    /// The keys of an inline table, one in each line.
    private static func lines(of table: String) -> String {
        guard case .table(let entries)? = try? TOMLNode.parse(Array("host = \(table)".utf8)).value,
            case .table(let keys)? = entries.first?.node.value
        else { return "" }
        return keys.map { "\(TOMLNode.Value.key($0.key)) = \($0.node.value.text)\n" }.joined()
    }
}
