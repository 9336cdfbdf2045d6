internal import ClientCore
internal import Foundation
internal import Logging
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// Several files, environment variables, and the texts of `netwatch config`.
extension ConfigurationReaderTests {
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
        var queue = Self.base.queue
        // The example of a host.
        queue.httpVersions = reader.configuration.queue.httpVersions
        #expect(queue.httpVersions.values.elementsEqual([.http2]))
        #expect(reader.configuration.queue == queue)
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

    @Test func `the effective configuration shows no secret of a URL, and the stored one keeps it`() throws {
        let result = try read(
            """
            [service]
            portal-probe = "http://user:sesame@h.example/?token=sesame&page=2"
            [[host]]
            url = "https://h.example/health?api_key=sesame"
            [[hook]]
            program = "/bin/true"
            arguments = ["--url=https://user:sesame@h.example/@a", "ops@example.com"]
            """,
            [:]
        )
        let text = ConfigurationText.effective(result)
        #expect(!text.contains("sesame"), "\(text)")
        for line in [
            #"portal-probe = "http://h.example/?token=REDACTED&page=2"  # "#,
            "url = \"https://h.example/health?api_key=REDACTED\"\n",
            #"arguments = ["--url=https://h.example/@a", "ops@example.com"]"#,
        ] {
            #expect(text.contains(line), "\(text)")
        }
        #expect(result.configuration.hosts.map(\.checkText) == ["https://h.example/health?api_key=REDACTED"])
        let stored = result.configuration.values.document
        #expect(stored.components(separatedBy: "sesame").count == 5, "\(stored)")
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
        #expect(result.configuration.values.texts["queue.inflight"] == "9", "a reload compares this value")
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
                == "NETWATCH_QUEUE_BACKOFF_CAP: `queue.backoff-cap` is 1s; it must not be less than "
                + "`queue.backoff-base`, which is 5s"
        )
    }

    @Test func `each key has its own variable, which no other use has`() {
        let names = SettingTable.settings.map(\.variable)
        #expect(Set(names).count == names.count)
        #expect(
            Set(names).isDisjoint(
                with: ServicePaths.variables + HookMessage.Variable.allCases.map(\.rawValue)
            )
        )
        #expect(names.contains("NETWATCH_ACCESS_QUOTA_STAGED_BYTES"))
    }

    @Test func `a variable that looks like one of netwatch and has no effect is named`() {
        let used = [
            "NETWATCH_QUEUE_INFLIGHT", "NETWATCH_STATE_DIR", "NETWATCH_SOCKET", "NETWATCH_BOOT_ID",
            "NETWATCH_DOWN_SINCE",
        ]
        let links = [
            "NETWATCH_SERVICE_HOST", "NETWATCH_SERVICE_PORT", "NETWATCH_SERVICE_PORT_HTTP", "NETWATCH_PORT",
            "NETWATCH_PORT_80_TCP", "NETWATCH_PORT_80_TCP_ADDR", "NETWATCH_PORT_80_TCP_PORT",
            "NETWATCH_WEB_SERVICE_HOST", "NETWATCH_WEB_PORT_53_UDP_PROTO",
        ]
        let unused = [
            "NETWATCH_PORTAL_PROBE", "NETWATCH_QUEUE_INFLGHT", "NETWATCH_STATE_DIRECTORY", "NETWATCH_WEB",
            "NETWATCH_ZZZZZZZZ",
        ]
        let names = used + links + unused + ["OTHER"]
        var environment = Dictionary(uniqueKeysWithValues: names.map { ($0, "x") })
        environment["NETWATCH_EMPTY"] = ""
        let endings = [
            "; did you mean `NETWATCH_SERVICE_PORTAL_PROBE`?", "; did you mean `NETWATCH_QUEUE_INFLIGHT`?",
            "; did you mean `NETWATCH_STATE_DIR`?", "; did you mean `NETWATCH_WEB_LISTEN`?", "",
        ]
        let expected = zip(unused, endings).map { "the environment variable `\($0)` has no effect\($1)" }
        let paths = ServicePaths(environment: environment)
        #expect(paths.unusedVariables.map(\.description) == expected)
    }

    @Test func `the variables of the paths replace the directories of the service manager`() {
        let managed = ["STATE_DIRECTORY": "/m/state", "CREDENTIALS_DIRECTORY": "/m/credentials"]
        let named = [
            "NETWATCH_STATE_DIR": "/n/state", "NETWATCH_CREDENTIALS": "/n/credentials",
            "NETWATCH_ENCRYPTION_KEY": "/n/key",
        ]
        func paths(_ environment: [String: String]) -> ServicePaths {
            ServicePaths(environment: environment, isRoot: true)
        }
        func values(_ environment: [String: String]) -> [String?] {
            let paths = paths(environment)
            return [paths.stateDirectory, paths.credentialsDirectory, paths.encryptionKeyFile, paths.fault]
        }
        #expect(values(managed) == ["/m/state", "/m/credentials", nil, nil])
        #expect(values(managed.merging(named) { $1 }) == ["/n/state", "/n/credentials", "/n/key", nil])
        #expect(values(managed.merging(named.mapValues { _ in "" }) { $1 }) == values(managed))
        // A missing directory that the user named is not replaced by the system's.
        #expect(paths(["NETWATCH_STATE_DIR": "/no/such"]).existingStateDirectory == nil)
        let key = String(repeating: "0f", count: 32)
        let fault = paths(["NETWATCH_ENCRYPTION_KEY": key]).fault
        #expect(fault?.contains("absolute path") == true && fault?.contains(key) == false)
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
}
