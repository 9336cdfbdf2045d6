internal import Foundation
internal import Glibc
internal import Logging
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite struct ConfigurationReaderTests {
    private static let base = ServiceConfiguration(stateDirectory: "/s", socket: "/s/socket")

    private static func read(_ documents: String...) -> ConfigurationReader {
        var reader = ConfigurationReader(base)
        for (number, document) in documents.enumerated() { reader.read("\(number)", Array(document.utf8)) }
        reader.finish()
        return reader
    }

    private static func problems(_ document: String) -> [String] {
        read(document).problems.map(\.description)
    }

    @Test func `values of all kinds are read`() {
        let reader = Self.read(
            """
            [service]
            log-level = "debug"
            [web]
            listen = "[::1]:9317"
            [queue]
            inflight = 7
            backoff-base = "1m30s"
            rates = ["10/s", "example.com=30/m,burst=5"]
            metered-interfaces = ["wlan*"]
            host-weights = { "example.com" = 3 }
            [queue.limits]
            bytes = "256 MiB"
            """
        )
        #expect(reader.problems == [])
        let configuration = reader.configuration
        #expect(configuration.logLevel == .debug)
        #expect(configuration.web?.description == "[::1]:9317")
        #expect(configuration.queue.inflight == 7)
        #expect(configuration.queue.backoffBase == .seconds(90))
        #expect(configuration.queue.rates.count == 2)
        #expect(configuration.queue.meteredInterfaces == ["wlan*"])
        #expect(configuration.queue.hostWeights == ["example.com": 3])
        #expect(configuration.queue.limits.bytes == 256 << 20)
    }

    @Test func `the defaults of requests, retention, stop and history have keys`() {
        let reader = Self.read(
            """
            [queue]
            ttl = "2d"
            connect-timeout = "3s"
            response-timeout = "4s"
            durability = "normal"
            stop-timeout = "10s"
            [queue.limits]
            lane-share = 1
            [queue.retention]
            done = "2h"
            done-requests = 5
            dead = "3d"
            bytes = "1 MiB"
            [history]
            retention = "40d"
            """
        )
        #expect(reader.problems == [])
        let (configuration, queue) = (reader.configuration, reader.configuration.queue)
        let defaults = configuration.requestDefaults
        #expect(defaults.timeToLive == .seconds(2 * 86_400) && defaults.durability == .normal)
        #expect(defaults.timeouts.connect == .seconds(3) && defaults.timeouts.response == .seconds(4))
        #expect(queue.limits.laneShare == 1 && queue.stopTimeout == .seconds(10))
        #expect(configuration.stopGrace > queue.stopTimeout + queue.cancellationTimeout)
        #expect(queue.retention.done == .seconds(7200) && queue.retention.doneCount == 5)
        #expect(queue.retention.dead == .seconds(3 * 86_400) && queue.retention.bytes == 1 << 20)
        #expect(configuration.historyRetention == .seconds(40 * 86_400))
    }

    @Test func `a reload applies the defaults of requests, the limits and the retention`() {
        let keys = [
            "ttl", "connect-timeout", "response-timeout", "durability", "limits.requests",
            "limits.bytes", "limits.lane-share", "retention.done", "retention.done-requests",
            "retention.dead", "retention.bytes",
        ].map { "queue.\($0)" }
        #expect(SettingTable.restartKeys.contains("queue.limits.disk-reserve"))
        #expect(Set(SettingTable.settings.map(\.path)).isSuperset(of: keys))
        #expect(Set(SettingTable.restartKeys).isDisjoint(with: keys))
    }

    @Test func `groups of the access must exist`() {
        let reader = Self.read(
            """
            [access]
            submit-groups = ["root"]
            read-groups = ["daemon", "root"]
            [access.quota]
            requests = 5
            bytes = "1 MiB"
            staged-bytes = 100
            connections = 3
            """
        )
        #expect(reader.problems == [])
        let configuration = reader.configuration
        #expect(configuration.access.submitGroups == [SystemGroup(name: "root", id: 0)])
        #expect(configuration.access.readGroups.map(\.name) == ["daemon", "root"])
        #expect(configuration.quota.requests == 5 && configuration.quota.bytes == 1 << 20)
        #expect(configuration.quota.stagedBytes == 100 && configuration.userConnections == 3)
        #expect(
            Self.problems(
                "[access]\nread-groups = [\"root\", \"no-such-group\"]\nquota = { connections = 0 }"
            )
                == [
                    "0:2:1: `access.read-groups` is [\"root\", \"no-such-group\"]; it must be an array of names of existing "
                        + "groups; `getent group NAME` checks a name",
                    "0:3:11: `access.quota.connections` is 0; it must be an integer from 1 to 65536",
                ]
        )
    }

    private static let owners: [(owner: UInt32, key: String, fault: String?)] = [
        (
            60_000, #"submit-groups = ["a", "nogroup"]"#,
            "the id 65533 of the group `nogroup` also stands for groups without an id in the user namespace of the "
                + "service; use another group"
        ),
        (
            65_534, #"submit-groups = ["a"]"#,
            "the service runs as the user 65534, whose id also stands for users without an id in its user namespace; run "
                + "it as another user"
        ),
        (60_000, #"submit-groups = ["a"]"#, nil), (65_534, "submit-groups = []", nil),
    ]

    @Test(arguments: owners)
    func `the ids of users and groups must identify them`(owner: UInt32, key: String, fault: String?) {
        var base = Self.base
        base.access = AccessPolicy(owner: owner, unmapped: UnmappedIDs(user: 65_534, group: 65_533))
        base.lookUpGroup = { (name) throws(SystemError) in
            SystemGroup(name: name, id: name == "nogroup" ? 65_533 : 60_010)
        }
        for setting in [key, key.replacing("submit", with: "read")] {
            var reader = ConfigurationReader(base)
            reader.read("0", Array("[access]\n\(setting)\n".utf8))
            reader.finish()
            let name = setting.prefix { $0 != " " }
            #expect(
                reader.problems.map(\.description) == fault.map { ["0:2:1: `access.\(name)`: \($0)"] } ?? []
            )
            #expect(reader.problems.allSatisfy { !$0.isTemporary })
        }
    }

    @Test func `a failure of the group database may be temporary, a missing group is not`() throws {
        var base = Self.base
        base.lookUpGroup = { (name) throws(SystemError) in
            if name == "failing" { throw SystemError(call: "getgrnam_r", errno: EIO) }
            return nil
        }
        let directory = try ScratchDirectory()
        func fault(_ text: String) throws -> InvalidConfiguration? {
            let file = try directory.write(Array(text.utf8), to: "a.toml")
            return #expect(throws: InvalidConfiguration.self) {
                _ = try ConfigurationFiles(path: file).read(into: base)
            }
        }
        let failing = try fault("[access]\nread-groups = [\"failing\"]\n")
        #expect(failing?.isTemporary == true)
        #expect(failing?.description.contains(":2:1: `access.read-groups` cannot be checked now: ") == true)
        #expect(try fault("[access]\nread-groups = [\"missing\", \"failing\"]\n")?.isTemporary == false)
        // A fault that a restart does not remove prevails.
        let both = try fault("[access]\nread-groups = [\"failing\"]\n[queue]\ninflight = 0\n")
        #expect(both?.isTemporary == false && both?.problems.count == 2)
    }

    @Test func `a reload applies the keys of the access`() {
        let keys = SettingTable.settings.map(\.path).filter { $0.hasPrefix("access.") }
        #expect(keys.count == 6 && Set(SettingTable.restartKeys).isDisjoint(with: keys))
    }

    @Test func `hosts get their names, checks and the defaults of any file`() {
        let reader = Self.read(
            """
            [[host]]
            url = "https://api.example.com/healthz"
            expect-status = 204
            [[host]]
            tcp = "[2001:db8::1]:5432"
            name = "db"
            interval = "10s"
            """,
            """
            [defaults]
            interval = "1m"
            fall = 5
            [[host]]
            route = "192.0.2.1"
            """
        )
        #expect(reader.problems == [])
        let hosts = reader.configuration.hosts
        #expect(hosts.map(\.name) == ["api.example.com", "db", "192.0.2.1"])
        #expect(
            hosts.map(\.checkText)
                == ["https://api.example.com/healthz", "tcp [2001:db8::1]:5432", "route 192.0.2.1"]
        )
        #expect(hosts[0].check == .web(url: "https://api.example.com/healthz", expectedStatus: 204...204))
        #expect(hosts.map(\.interval) == [.seconds(60), .seconds(10), .seconds(60)])
        #expect(hosts.allSatisfy { $0.fall == 5 && $0.rise == 2 })
    }

    @Test func `hooks report all outages of the hosts that they name, remote ones by default`() throws {
        let reader = Self.read(
            """
            [[hook]]
            webhook = "https://alerts.example.com/a"
            credential = "alerts"
            [[hook]]
            program = "/usr/local/bin/alert"
            arguments = ["--host", "a b"]
            timeout = "5s"
            hosts = ["db"]
            on = ["down"]
            causes = ["local", "remote"]
            """,
            """
            [[host]]
            name = "db"
            route = "192.0.2.1"
            [[hook]]
            program = "/bin/true"
            """
        )
        #expect(reader.problems == [])
        let hooks = reader.configuration.hooks
        try #require(hooks.count == 3)
        #expect(
            hooks[0].action == .webhook(Webhook(url: "https://alerts.example.com/a", credential: "alerts"))
        )
        #expect(hooks[0].events == [.down, .up] && hooks[0].hosts == nil && hooks[0].causes == [.remote])
        var program = HookProgram(path: "/usr/local/bin/alert")
        program.arguments = ["--host", "a b"]
        program.timeout = .seconds(5)
        #expect(hooks[1].action == .program(program))
        #expect(
            hooks[1].events == [.down] && hooks[1].hosts == ["db"] && hooks[1].causes == [.local, .remote]
        )
        #expect(hooks[2].action == .program(HookProgram(path: "/bin/true")))
    }

    @Test func `all faults of hooks are reported, with their positions`() {
        let problems = Self.problems(
            """
            [[host]]
            name = "db"
            route = "192.0.2.1"
            [[hook]]
            webhook = "https://alerts.example.com/?access_token=x"
            program = "/bin/true"
            [[hook]]
            hosts = ["dbb"]
            on = []
            causes = ["own"]
            program = "alert"
              arguments = ["a", 1]
            timeout = "0s"
            credential = "a"
            [[hook]]
            webhook = "https://alerts.example.com/"
            credential = ".hidden"
            timeout = "5s"
            url = "https://alerts.example.com/"
            """
        )
        let places = problems.map { $0.prefix { $0 != " " } }
        #expect(
            places.sorted()
                == [
                    "0:10:1:", "0:11:1:", "0:12:3:", "0:13:1:", "0:14:1:", "0:17:1:", "0:18:1:", "0:19:1:",
                    "0:4:1:", "0:5:1:", "0:8:1:", "0:9:1:",
                ],
            "\(problems)"
        )
        let words = [
            "hook: the hook has more than one of `webhook` and `program`; it must have exactly one",
            "`access_token`", "there is no host with the name `dbb`; did you mean `db`?",
            "`on` is []; it must be an array of at least one of \"down\" and \"up\"",
            "`causes` is [\"own\"]; it must be an array of at least one of \"local\" and \"remote\"",
            "`program` is \"alert\"; it must be an absolute path", "`arguments` is [\"a\", 1]",
            "`timeout` is \"0s\"", "`credential` requires `webhook`", "`timeout` requires `program`",
            "the credential name", "`url` is not a key",
        ]
        for word in words { #expect(problems.contains { $0.contains(word) }, "\(word): \(problems)") }
    }

    @Test func `a later file replaces values and adds hosts`() {
        let reader = Self.read(
            "[queue]\ninflight = 7\n[[host]]\nroute = \"192.0.2.1\"",
            "[queue]\ninflight = 9\n[[host]]\nroute = \"192.0.2.2\""
        )
        #expect(reader.configuration.queue.inflight == 9)
        #expect(reader.configuration.hosts.count == 2)
        let origin = reader.origins["queue.inflight"]
        #expect(origin?.place == "1:2" && origin?.text == "9")
    }

    @Test func `all faults are reported at once, with their positions`() {
        let problems = Self.problems(
            """
            [service]
            log-level = "loud"
            [queue]
              inflght = 3
            inflight = "4"
            backoff-base = "5 minutes"
            [qeue]
            a = 1
            [[host]]
            url = "ftp://x/"
            [[host]]
            tcp = "db:99999"
            fall = 0
            """
        )
        #expect(
            problems.map { $0.prefix { $0 != " " } }
                == ["0:2:1:", "0:4:3:", "0:5:1:", "0:6:1:", "0:7:2:", "0:10:1:", "0:13:1:", "0:12:1:"]
        )
        let words = [
            "\"loud\"", "did you mean `inflight`?", "\"4\"", "5 minutes", "did you mean `queue`?", "ftp",
            "fall", "99999",
        ]
        for (problem, word) in zip(problems, words) { #expect(problem.contains(word), "\(problem)") }
    }

    @Test func `no fault of a host hides another one`() {
        let problems = Self.problems(
            """
            [[host]]
            name = "a b"
            [[host]]
            name = "c d"
            url = "ftp://x/"
            [[host]]
            name = "e"
            route = "192.0.2.1"
            [[host]]
            name = "e"
            tcp = "db"
            """
        )
        #expect(
            problems.map { $0.prefix { $0 != " " } }
                == ["0:1:1:", "0:2:1:", "0:5:1:", "0:4:1:", "0:11:1:", "0:9:1:"],
            "\(problems)"
        )
    }

    @Test(arguments: [
        ("[queue]\ninflight = 0", "an integer from 1 to 65536"),
        ("queue = 3", "must be a table"),
        ("host = \"a\"", "[[host]]"),
        ("[[host]]\n", "none of `url`, `tcp` and `route`"),
        ("hook = \"a\"", "[[hook]]"),
        ("[[hook]]\n", "none of `webhook` and `program`"),
        ("[[host]]\nurl = \"http://a/\"\nroute = \"b\"", "more than one"),
        (
            "[[host]]\nurl = \"http://a/\"\n[[host]]\nurl = \"http://a/b\"",
            "0:3:1: the host of `0:1` has the same name, `a`; set a different `name`"
        ),
        ("[[host]]\nurl = \"http://a/\"\nexpect-status = \"300-200\"", "statuses like"),
        ("[[host]]\nroute = \"a b\"", "route"),
        ("[[host]]\nname = \"a b\"\nroute = \"a\"", "letters, digits"),
        ("[defaults]\ntimeout = \"61s\"", "from 10ms to 1m"),
        ("[queue]\nbackoff-base = \"20m\"", "less than `queue.backoff-base`"),
        ("[web]\nlisten = \"0.0.0.0:80\"", "loopback"),
        ("[queue.limits]\nlane-share = 0", "more than 0 and at most 1"),
        ("[queue.limits]\nlane-share = 1.5", "more than 0 and at most 1"),
        ("[queue]\ndurability = \"none\"", "one of \"full\", \"normal\""),
        ("[queue.retention]\ndead = \"1s\"", "from 1m to 366d"),
        ("a = 1979-05-27", "`a` is not a key"),
        ("a = [1,", "0:1:"),
        ("a = [1,", "; the rest of this file was not checked"),
        ("[queue]\nrates = [\"1/s\", \"2/s\"]", "one for each host"),
    ])
    func `a fault says what is accepted`(document: String, words: String) {
        let problems = Self.problems(document)
        #expect(problems.count == 1, "\(problems)")
        #expect(problems.first?.contains(words) == true, "\(problems)")
    }

    @Test func `the default file sets nothing, and with its examples it has no faults`() {
        let file = ConfigurationText.defaultFile
        let plain = Self.read(file)
        #expect(plain.problems == [] && plain.origins.isEmpty && plain.configuration.hosts.isEmpty)
        let active = file.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.hasPrefix("#") && !$0.hasPrefix("##") ? $0.dropFirst() : $0 }.joined(separator: "\n")
        let reader = Self.read(active)
        #expect(reader.problems == [])
        #expect(Set(reader.origins.keys) == Set(SettingTable.settings.map(\.path)))
        #expect(reader.configuration.hosts.count == 3 && reader.configuration.hooks.count == 2)
        // The defaults in the file are those of the program.
        #expect(reader.configuration.queue == Self.base.queue)
        #expect(reader.configuration.requestDefaults == EnqueueOptions())
        #expect(reader.configuration.historyRetention == HostHistory.defaultRetention)
        #expect(reader.configuration.hostDefaults == HostDefaults())
        #expect(reader.configuration.logLevel == Self.base.logLevel)
    }

    @Test func `the effective configuration is a configuration with the same values`() throws {
        let directory = try ScratchDirectory()
        let host = "[[host]]\nname = \"a\"\nroute = \"192.0.2.1\"\nfall = 1\n"
        let hook = "[[hook]]\nprogram = \"/bin/true\"\nhosts = [\"a\"]\n"
        let file = try directory.write(Array("[queue]\ninflight = 7\n\(hook)\(host)".utf8), to: "a.toml")
        let result = try ConfigurationFiles(path: file).read(into: Self.base)
        let text = ConfigurationText.effective(result)
        #expect(text.contains("inflight = 7  # \(file):2\n"))
        #expect(text.contains("inflight-per-lane = 8  # default\n"))
        let again = Self.read(text)
        #expect(again.problems == [])
        #expect(again.configuration.queue == result.configuration.queue)
        #expect(again.configuration.hosts == result.configuration.hosts)
        #expect(again.configuration.hooks == result.configuration.hooks)
        #expect(again.configuration.hooks.count == 1)
    }

    /// Reads a file, and then environment variables.
    private func read(
        _ text: String,
        _ environment: [String: String]
    ) throws -> ConfigurationFiles.Result {
        let directory = try ScratchDirectory()
        let file = try directory.write(Array(text.utf8), to: "a.toml")
        return try ConfigurationFiles(path: file, environment: environment).read(into: Self.base)
    }

    @Test func `environment variables replace the values of files, and are named as their origin`() throws {
        let result = try read(
            "[queue]\ninflight = 7\nbackoff-base = \"3s\"\n[queue.limits]\nbytes = 5\n",
            [
                "NETWATCH_QUEUE_INFLIGHT": "9", "NETWATCH_QUEUE_LIMITS_BYTES": "\"1 KiB\"",
                "NETWATCH_QUEUE_RATES": "[\"10/s\"]", "NETWATCH_QUEUE_HOST_WEIGHTS": "{ \"a.example\" = 3 }",
                "NETWATCH_QUEUE_BACKOFF_BASE": "", "NETWATCH_SERVICE_HOST": "192.0.2.1", "OTHER": "x",
            ]
        )
        let queue = result.configuration.queue
        #expect(queue.inflight == 9 && queue.limits.bytes == 1024 && queue.rates.count == 1)
        #expect(queue.hostWeights == ["a.example": 3])
        #expect(queue.backoffBase == .seconds(3), "an empty variable counts as unset")
        #expect(
            result.variables == [
                "NETWATCH_QUEUE_HOST_WEIGHTS", "NETWATCH_QUEUE_INFLIGHT", "NETWATCH_QUEUE_LIMITS_BYTES",
                "NETWATCH_QUEUE_RATES",
            ]
        )
        let text = ConfigurationText.effective(result)
        #expect(text.contains("\ninflight = 9  # NETWATCH_QUEUE_INFLIGHT\n"))
        #expect(text.contains("\nbackoff-base = \"3s\"  # \(result.files[0]):3\n"))
        #expect(result.configuration.settings["queue.inflight"] == "9", "a reload compares this value")
    }

    @Test func `faults of environment variables come after those of files and name the variable`() throws {
        let error = #expect(throws: InvalidConfiguration.self) {
            try read(
                "[queue]\ninflght = 7\n",
                [
                    "NETWATCH_QUEUE_TTL": "1m", "NETWATCH_QUEUE_INFLIGHT": "0",
                    "NETWATCH_QUEUE_INFLIGHT_PER_LANE": "3\n[queue]\ninflight = 5",
                    "NETWATCH_ACCESS_QUOTA_BYTES": "1 GiB",
                ]
            )
        }
        let faults = error?.problems.dropFirst().map(\.description) ?? []
        #expect(error?.problems.first?.line == 2 && faults.count == 4, "\(faults)")
        let expected = [
            #"NETWATCH_ACCESS_QUOTA_BYTES: `1 GiB` is not a TOML value; write `NETWATCH_ACCESS_QUOTA_BYTES='"1 GiB"'`"#,
            "NETWATCH_QUEUE_INFLIGHT: `queue.inflight` is 0; it must be an integer from 1 to 65536",
            "NETWATCH_QUEUE_INFLIGHT_PER_LANE: `3\n[queue]\ninflight = 5` is not a TOML value like `8`",
            #"NETWATCH_QUEUE_TTL: `1m` is not a TOML value; write `NETWATCH_QUEUE_TTL='"1m"'`"#,
        ]
        #expect(faults == expected)
    }

    @Test func `a fault of two keys names the variable that one of them comes from`() throws {
        let error = #expect(throws: InvalidConfiguration.self) {
            try read("[queue]\nbackoff-base = \"5s\"\n", ["NETWATCH_QUEUE_BACKOFF_CAP": "\"1s\""])
        }
        #expect(
            error?.description
                == "NETWATCH_QUEUE_BACKOFF_CAP: `queue.backoff-cap` is less than `queue.backoff-base`"
        )
    }

    @Test func `each key has its own variable, which no other use has`() {
        let names = SettingTable.settings.map(\.variable)
        #expect(Set(names).count == names.count)
        #expect(Set(names).isDisjoint(with: ["NETWATCH_CONFIG", "NETWATCH_SOCKET"]))
        #expect(names.contains("NETWATCH_ACCESS_QUOTA_STAGED_BYTES"))
    }

    @Test func `drop-ins are read in the order of their names, and other files are not`() throws {
        let directory = try ScratchDirectory()
        let file = try directory.write([], to: "a.toml")
        try FileManager.default.createDirectory(atPath: file + ".d", withIntermediateDirectories: false)
        for (name, value) in [("20.toml", 20), ("10.toml", 10), ("30.toml~", 30), (".40.toml", 40)] {
            _ = try directory.write(Array("[queue]\ninflight = \(value)".utf8), to: "a.toml.d/\(name)")
        }
        let result = try ConfigurationFiles(path: file).read(into: Self.base)
        #expect(result.configuration.queue.inflight == 20)
        #expect(result.files == [file, "\(file).d/10.toml", "\(file).d/20.toml"])
    }

    @Test func `the file of the service manager's directory may be missing, a named one may not`() throws {
        let directory = try ScratchDirectory()
        let paths = ServicePaths(environment: ["CONFIGURATION_DIRECTORY": directory.path])
        #expect(try paths.configurationFiles(named: nil).read(into: Self.base).files == [])
        let file = try directory.write(Array("[queue]\n".utf8), to: "netwatch.toml")
        #expect(try paths.configurationFiles(named: nil).read(into: Self.base).files == [file])
        let named = ServicePaths(environment: ["NETWATCH_CONFIG": directory.file("missing")])
        #expect(throws: InvalidConfiguration.self) {
            try named.configurationFiles(named: nil).read(into: Self.base)
        }
    }

    @Test func `a missing file that was named, and a file that is too large, are faults`() throws {
        let directory = try ScratchDirectory()
        let missing = directory.file("missing")
        let error = #expect(throws: InvalidConfiguration.self) {
            try ConfigurationFiles(path: missing).read(into: Self.base)
        }
        #expect(error?.description == "\(missing): the file cannot be read: No such file or directory")
        let large = try directory.write(
            [UInt8](repeating: UInt8(ascii: "\n"), count: ConfigurationFiles.longestFile + 1),
            to: "large"
        )
        #expect(throws: InvalidConfiguration.self) {
            try ConfigurationFiles(path: large).read(into: Self.base)
        }
    }

    /// Random changes of the default file must end with a configuration or with faults.
    @Test func `damaged files are read without a crash`() {
        let file = Array(ConfigurationText.defaultFile.replacing("\n#", with: "\n").utf8)
        var generator = SeededGenerator(seed: UInt64(CheckSize.choose(small: 1, medium: 2, full: 3)))
        for _ in 0..<CheckSize.choose(small: 200, medium: 2000, full: 20_000) {
            var bytes = file
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(
                    in: 0...255,
                    using: &generator
                )
            }
            bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
            var reader = ConfigurationReader(Self.base)
            reader.read("file", bytes)
            reader.finish()
        }
        // The parser limits the nesting.
        var reader = ConfigurationReader(Self.base)
        reader.read("nested", Array(("a = " + String(repeating: "[", count: 100_000)).utf8))
        #expect(reader.problems.count == 1)
    }
}
