internal import ClientCore
internal import Foundation
internal import Logging
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite struct ConfigurationReaderTests {
    static let base = ServiceConfiguration(stateDirectory: "/s", socket: "/s/socket")

    static func read(_ documents: String...) -> ConfigurationReader {
        var reader = ConfigurationReader(base)
        for (number, document) in documents.enumerated() { reader.read("\(number)", Array(document.utf8)) }
        reader.finish()
        return reader
    }

    static func problems(_ document: String) -> [String] {
        read(document).problems.map(\.description)
    }

    @Test func `a byte order mark is ignored`() {
        let reader = Self.read("\u{feff}[queue]\ninflight = 7\ninflght = 7")
        #expect(reader.configuration.queue.inflight == 7 && reader.problems.map(\.line) == [3])
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
            scan-interval = "0s"
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
        #expect(queue.scanInterval == .zero)
        #expect(configuration.stopGrace > queue.stopTimeout + queue.cancellationTimeout)
        #expect(queue.retention.done == .seconds(7200) && queue.retention.doneCount == 5)
        #expect(queue.retention.dead == .seconds(3 * 86_400) && queue.retention.bytes == 1 << 20)
        #expect(configuration.historyRetention == .seconds(40 * 86_400))
    }

    @Test func `statuses are read for the queue, its hosts and its lanes, and the last file counts`() {
        let reader = Self.read(
            """
            [queue]
            retry-statuses = 404
            dead-statuses = "500-599,410"
            host-retry-statuses = { "A.example" = "4xx" }
            lane-dead-statuses = { readings = "413,422" }
            """,
            """
            [queue]
            dead-statuses = ""
            host-retry-statuses = { "b.example" = "403" }
            host-dead-statuses = { "B.example" = 404 }
            """
        )
        #expect(reader.problems == [])
        let queue = reader.configuration.queue
        #expect(queue.statusRules == StatusRules(retry: [404...404]))
        #expect(queue.hostStatusRules == ["b.example": StatusRules(retry: [403...403], dead: [404...404])])
        #expect(queue.laneStatusRules == ["readings": StatusRules(dead: [413...413, 422...422])])
    }

    @Test func `a reload applies all keys except these`() {
        let keys = ["service.portal-probe", "web.listen", "queue.metered-interfaces"]
        #expect(SettingTable.restartKeys == keys)
    }

    @Test func `the documentation lists the keys that need a restart`() throws {
        let rows = try DocumentationPage("docs/configuration.md").rows.filter { $0.count == 2 }
        let documented = rows.map { $0[0].replacing("`", with: "") }
        let keys = SettingTable.settings.map(\.path).filter { documented.contains($0) }
        #expect(keys == SettingTable.restartKeys)
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

    @Test func `the version of HTTP of a host applies to its probes, and to the queue's requests to it`()
        throws
    {
        let reader = Self.read(
            """
            [[host]]
            url = "https://api.example.com/healthz"
            http-version = "1.1"
            [[host]]
            url = "https://b.example.com:8443/"
            http-version = "2"
            [[host]]
            url = "https://c.example.com/"
            """,
            "[[host]]\nname = \"again\"\nurl = \"https://API.example.com/\"\nhttp-version = \"1.1\""
        )
        #expect(reader.problems == [])
        let hosts = reader.configuration.hosts
        #expect(hosts.map(\.httpVersion) == [.http1, .http2, nil, .http1])
        let probed = try hosts.map { try ($0.probe as? HTTPProbe)?.httpVersion }
        #expect(probed == [.http1, .http2, .http2, .http1])
        let api = Origin(scheme: "https", host: "api.example.com", port: 443)
        let other = Origin(scheme: "https", host: "b.example.com", port: 8443)
        #expect(reader.configuration.queue.httpVersions == [api: .http1, other: .http2])
    }

    @Test func `a host without a version of HTTP has that of another host with its origin`() throws {
        let reader = Self.read(
            """
            [[host]]
            name = "before"
            url = "https://api.example.com/a"
            [[host]]
            url = "https://api.example.com/"
            http-version = "1.1"
            [[host]]
            name = "other-port"
            url = "https://api.example.com:8443/"
            [[host]]
            tcp = "api.example.com:443"
            [[host]]
            name = "http"
            url = "http://api.example.com/"
            http-version = "1.1"
            """,
            "[[host]]\nname = \"after\"\nurl = \"https://api.example.com/b\""
        )
        #expect(reader.problems == [])
        let versions = try reader.configuration.hosts.map { try ($0.probe as? HTTPProbe)?.httpVersion }
        #expect(versions == [.http1, .http1, .http2, nil, .http1, .http1])
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
            group-wait = "0s"
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
        #expect(hooks.map(\.groupWait) == [.seconds(30), .zero, .seconds(30)])
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

    @Test func `a string is written with escapes for characters that are not printable, and read unchanged`()
        throws
    {
        let text = "a\"\\\n\u{7}\u{202E}\u{E0041}ü"
        let quoted = TOMLNode.Value.quoted(text)
        #expect(quoted == #""a\"\\\n\u0007\u202e\U000e0041ü""#)
        let document = try TOMLNode.parse(Array("value = \(quoted)".utf8))
        guard case .table(let entries) = document.value, case .string(let read)? = entries.first?.node.value
        else {
            return #expect(Bool(false), "not a string")
        }
        #expect(read.unicodeScalars.elementsEqual(text.unicodeScalars))
    }
}
