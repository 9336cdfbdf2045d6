internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// Faults, with their positions and what is accepted.
extension ConfigurationReaderTests {
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
            group-wait = "2h"
            """
        )
        let places = problems.map { $0.prefix { $0 != " " } }
        #expect(
            places.sorted()
                == [
                    "0:10:1:", "0:11:1:", "0:12:3:", "0:13:1:", "0:14:1:", "0:17:1:", "0:18:1:", "0:19:1:",
                    "0:20:1:", "0:4:1:", "0:5:1:", "0:8:1:", "0:9:1:",
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
            "`group-wait` is \"2h\"; it must be a",
        ]
        for word in words { #expect(problems.contains { $0.contains(word) }, "\(word): \(problems)") }
    }

    @Test func `the push of metrics has keys, which are checked like those of a webhook`() {
        let reader = Self.read(
            """
            [metrics]
            push-url = "https://a.example/v1/metrics"
            push-interval = "10s"
            push-credential = "collector"
            push-instance = "gateway-17"
            push-ttl = "7d"
            """
        )
        var expected = MetricsPush()
        (expected.url, expected.interval) = ("https://a.example/v1/metrics", .seconds(10))
        (expected.credential, expected.instance) = ("collector", "gateway-17")
        expected.timeToLive = .seconds(7 * 86_400)
        #expect(reader.problems == [] && reader.configuration.metricsPush == expected)
        let problems = Self.problems(
            """
            [metrics]
            push-url = "https://a.example/?access_token=sesame"
            push-interval = "9s"
            push-credential = ".hidden"
            push-instance = "a\\nb"
            push-ttl = "8d"
            """
        )
        for (line, words) in [
            (2, "`metrics.push-url`: "), (3, "`metrics.push-interval` is \"9s\"; it must be a duration"),
            (4, "`metrics.push-credential`: the credential name"), (5, "it must be a name of 1 to 255 bytes"),
            (6, "from 1m to 7d"),
        ] {
            #expect(problems.contains { $0.hasPrefix("0:\(line):1: ") && $0.contains(words) }, "\(problems)")
        }
        #expect(problems.count == 5 && !problems.contains { $0.contains("sesame") })
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

    @Test(arguments: [
        "http://user:sesame@host/", "http://sesame@host/", "http://user:se/same@host/",
        "http://user:se#same@host/",
        "ftp://user:sesame@host/", "http://user:se same@host/", "user:sesame@host",
    ])
    func `the URL of a host with a password is refused, and no message contains the password`(url: String) {
        let problems = Self.problems("[[host]]\nname = \"a\"\nurl = \"\(url)\"")
        #expect(
            problems.count == 1 && problems[0].hasPrefix("0:3:1: host: `url`")
                && problems[0].contains("user name") && !problems[0].contains("same"),
            "\(problems)"
        )
    }

    @Test(arguments: [
        "[service]\nportal-probe = \"ftp://user:sesame@host/\"",
        "[service]\nportal-probe = \"user:sesame@host\"", "[service]\nportal-probe = \"sesame@host\"",
        "[service]\nportal-probe = \"ftp://host/?token=sesame\"",
        "[service]\nportal-probe = [\"http://user:sesame@host/\"]",
        "[service]\nlog-level = \"http://user:se/same@host/\"",
        "[metrics]\npush-url = [1, [\"https://user:sesame@host/\"]]",
        "[metrics]\npush-url = { url = \"https://host/?token=sesame\" }",
        "[queue]\nhost-weights = { \"https://user:sesame@host\" = 3 }",
        "[queue]\nrates = [\"http://user:sesame@host/\"]",
        "[[host]]\nurl = [\"http://user:sesame@host/\"]", "[[host]]\nurl = \"ftp://host/?token=sesame\"",
        "[[host]]\ntcp = \"http://user:sesame@host/\"", "[[host]]\nroute = \"http://user:sesame@host/\"",
        "[[host]]\nname = \"http://user:sesame@host/\"\nroute = \"192.0.2.1\"",
        "[[hook]]\nwebhook = [\"https://host/?token=sesame\"]",
        "[[hook]]\nprogram = \"http://user:sesame@host/\"",
        "[[hook]]\nprogram = \"/bin/true\"\nhosts = [\"http://user:sesame@host/\"]",
        "[[hook]]\nwebhook = \"https://host/\"\ncredential = \"http://user:sesame@host/\"",
        "[metrics]\npush-credential = \"http://user:sesame@host/\"",
        "\"https://user:sesame@host/\" = 1",
    ])
    func `no fault contains a secret of a URL`(document: String) {
        let problems = Self.problems(document)
        #expect(!problems.isEmpty && !problems.contains { $0.contains("same") }, "\(problems)")
    }

    @Test(arguments: ["http://user:sesame@host/", "\"ftp://user:sesame@host/\"", "sesame@host"])
    func `no fault of an environment variable contains a secret of a URL`(value: String) {
        var reader = ConfigurationReader(Self.base)
        reader.read(environment: ["NETWATCH_SERVICE_PORTAL_PROBE": value])
        let problems = reader.problems.map(\.description)
        #expect(problems.count == 1 && !problems[0].contains("sesame"), "\(problems)")
    }

    @Test func `the message about an unknown host of a hook lists at most ten hosts`() {
        let hosts = (10...21).map { "[[host]]\nname = \"h\($0)\"\nroute = \"192.0.2.1\"\n" }.joined()
        let problems = Self.problems(hosts + "[[hook]]\nprogram = \"/bin/true\"\nhosts = [\"zzzzzz\"]")
        #expect(problems.count == 1, "\(problems)")
        let listed = (10...19).map { "`h\($0)`" }.joined(separator: ", ")
        #expect(problems.first?.hasSuffix("`zzzzzz`; accepted: \(listed) and 2 more") == true)
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
        (
            "[[host]]\nurl = \"https://a/\"\nhttp-version = 1.1",
            "0:3:1: host: `http-version` is 1.1; it must be \"1.1\" or \"2\""
        ),
        ("[[host]]\nurl = \"https://a/\"\nhttp-version = \"3\"", "must be \"1.1\" or \"2\""),
        (
            "[[host]]\nurl = \"http://a/\"\nhttp-version = \"2\"",
            "0:3:1: host: the HTTP version is `2`, but the URL begins with `http://`; it must be `1.1`, or the URL https"
        ),
        ("[[host]]\ntcp = \"a:443\"\nhttp-version = \"2\"", "`http-version` requires `url`"),
        (
            """
            [[host]]
            url = "https://a/"
            http-version = "1.1"
            [[host]]
            name = "b"
            url = "https://a/b"
            http-version = "2"
            """,
            "0:7:1: host: `http-version` is \"2\", but \"1.1\" for the host of `0:1`, which also has the origin "
                + "https://a:443; set the same value"
        ),
        ("[[host]]\nroute = \"a b\"", "route"),
        ("[[host]]\nname = \"a b\"\nroute = \"a\"", "letters, digits"),
        ("[defaults]\ntimeout = \"61s\"", "from 10ms to 1m"),
        (
            "[queue]\nbackoff-base = \"20m\"",
            "`queue.backoff-cap` is 15m; it must not be less than `queue.backoff-base`, which is 20m"
        ),
        ("[web]\nlisten = \"0.0.0.0:80\"", "loopback"),
        ("[queue.limits]\nlane-share = 0", "more than 0 and at most 1"),
        ("[queue.limits]\nlane-share = 1.5", "more than 0 and at most 1"),
        ("[queue]\ndurability = \"none\"", "one of \"full\", \"normal\""),
        ("[queue.retention]\ndead = \"1s\"", "from 1m to 366d"),
        ("a = 1979-05-27", "`a` is not a key"),
        ("a = [1,", "0:1:"),
        ("a = [1,", "; the rest of this file was not checked"),
        ("[queue]\nrates = [\"1/s\", \"2/s\"]", "one for each host"),
        ("[queue]\nrates = [\"1/d\"]", "`queue.rates` is [\"1/d\"]; it must be an array of rates"),
        ("[queue]\nrates = [\"1/d\"]", "with the units s, m and h"),
        (
            "[queue]\nhost-weights = { \"bücher.example\" = 3 }",
            "an international name must be written as `xn--bcher-kva.example`"
        ),
        (
            "[queue]\nhost-retry-statuses = { \"bücher.example\" = 404 }",
            "an international name must be written as `xn--bcher-kva.example`"
        ),
        (
            "[queue]\nrates = [\"bücher.example=1/s\"]",
            "an international name must be written as `xn--bcher-kva.example`"
        ),
        ("[queue]\nhost-weights = { \"*\" = 3 }", "without a scheme, a port or `*`"),
        ("[[host]]\nurl = \"\"", "0:2:1: host: `url` is \"\"; it must be an http or https URL"),
        (
            "[web]\nlisten = 127.0.0.1:9317 # page",
            "like `listen = \"127.0.0.1:9317\"`; the rest of this file"
        ),
        ("[[host]]\nurl = http://u:sesame@h/", "like `url = \"http://REDACTED@h/\"`"),
        ("[[hook]]\nprogram = \"/bin/true\"\nhosts = [\"zzz\"]", "`zzz`; add a `[[host]]` with this name"),
        (
            "[queue]\nretry-statuses = \"404;500\"",
            "`queue.retry-statuses` is \"404;500\"; it must be at most 32 statuses"
        ),
        ("[queue]\ndead-statuses = 600", "`queue.dead-statuses` is 600; it must be at most 32 statuses"),
        (
            "[queue]\nlane-retry-statuses = { l = true }",
            "it must be a table of labels, each with at most 32 statuses"
        ),
        (
            "[queue]\nhost-dead-statuses = { \"*.example\" = 404 }",
            "it must be a table of hosts, each with at most 32"
        ),
        (
            "[queue]\nretry-statuses = \"4xx\"\ndead-statuses = 404",
            "0:3:1: `queue.dead-statuses`: both the retry statuses `400-499` and the dead statuses `404` contain 404"
        ),
        (
            "[queue]\nhost-retry-statuses = { a = 404 }\nhost-dead-statuses = { A = 404 }",
            "0:3:1: `queue.host-dead-statuses` of `a`: both the retry statuses `404`"
        ),
    ])
    func `a fault says what is accepted`(document: String, words: String) {
        let problems = Self.problems(document)
        #expect(problems.count == 1, "\(problems)")
        #expect(problems.first?.contains(words) == true, "\(problems)")
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
