/// How the tests run the code blocks of the documentation that contain commands.
struct DocumentedCommands: Sendable {
    /// The languages of code blocks that contain commands. In `console`, `$` precedes each command.
    static let languages: Set = ["sh", "console"]

    enum Rule: Sendable {
        /// `DocumentedCommandTests` runs the block in a shell.
        case shell
        /// `DocumentedCommandTests` runs each line in a shell. The lines with these beginnings run until SIGINT.
        case lines(interrupted: [String] = [])
        /// `DocumentedCommandTests` compares the targets with the Makefile. They run the tests, or take hours.
        case make
        /// A test suite runs the block, and changes the network or the store between the blocks.
        case suite(String)
        /// A script runs the block.
        case script(String)
        /// No test runs the block, for this reason.
        case never(String)
    }

    /// The heading above the block.
    let heading: String
    let rule: Rule

    init(_ heading: String, _ rule: Rule) {
        self.heading = heading
        self.rule = rule
    }

    /// The blocks of each page, in their order. A page that is missing has none.
    static let pages: [String: [DocumentedCommands]] = [
        "README.md": [
            DocumentedCommands("netwatch", .make),
            DocumentedCommands(
                "Get it",
                .never("installs the package; scripts/check-deb installs it with dpkg, in namespaces")
            ),
            DocumentedCommands("Get it", .lines(interrupted: ["netwatch example.com"])),
        ],
        "CONTRIBUTING.md": [DocumentedCommands("Contributing to netwatch", .make)],
        "docs/commands.md": [
            DocumentedCommands(
                "Examples",
                .lines(interrupted: ["netwatch example.com", "netwatch host db.internal", "netwatch monitor"])
            ),
            DocumentedCommands("`netwatch host [HOST…]`", .lines(interrupted: ["netwatch host"])),
            DocumentedCommands("`netwatch send URL`", .lines()),
            DocumentedCommands("`netwatch send URL`", .shell),
            DocumentedCommands("`netwatch send URL`", .shell),
            DocumentedCommands("Captive portals", .shell),
            DocumentedCommands("Private certificate authorities", .script("scripts/check-systemd")),
            DocumentedCommands("`netwatch queue`", .lines()),
            DocumentedCommands("Events", .lines(interrupted: ["netwatch queue events"])),
            DocumentedCommands("Encryption", .script("scripts/check-systemd")),
        ],
        "docs/configuration.md": [
            DocumentedCommands("Precedence", .shell),
            DocumentedCommands("Access", .script("scripts/check-systemd")),
        ],
        "docs/control-api.md": [
            DocumentedCommands("Control API", .shell),
            DocumentedCommands("`export`", .suite("QueueArchiveTests")),
        ],
        "docs/how-to.md": suite(
            "HowToTests",
            [
                "Use several uplinks", "Use several uplinks", "Send through a captive portal",
                "Send through a captive portal", "Run jobs that need the network", "Get alerts",
                "Use a credential",
            ]
        ),
        "docs/monitoring.md": suite("MonitoringPageTests", ["History"]),
        "docs/operations.md": suite(
            "OperationsPageTests",
            [
                "Export", "Export", "Copy of the directory", "Copy of the directory",
            ]
        ) + [DocumentedCommands("The key as a file", .script("scripts/check-systemd"))]
            + suite(
                "OperationsPageTests",
                [
                    "Move to another machine", "Move to another machine", "Upgrade and downgrade",
                    "Repair a damaged store",
                ]
            ) + [DocumentedCommands("Fields of the journal", .script("scripts/check-systemd"))],
        "docs/tutorial.md": suite(
            "TutorialTests",
            [
                "Watch the collector", "Watch the collector", "Send a reading", "Run it from cron",
                "Pull the cable", "Pull the cable", "Plug it in again",
            ]
        ),
        "systemd/README.md": [
            DocumentedCommands("The systemd units", .script("scripts/check-systemd")),
            DocumentedCommands(
                "`netwatch.socket` and `netwatch-failed.target`",
                .script("scripts/check-systemd")
            ),
            DocumentedCommands(
                "`netwatch-wait-online.service` and `netwatch-online.target`",
                .script("scripts/check-systemd")
            ),
        ],
        "Sources/ClientCore/ClientCore.docc/GettingStarted.md": [DocumentedCommands("Overview", packages)],
        "Sources/ClientCore/ClientCore.docc/Trust.md": suite(
            "ServerTrustPolicyTests",
            [
                "Pins that survive a renewal"
            ]
        ),
        "Sources/NetworkReachability/NetworkReachability.docc/GettingStarted.md": [
            DocumentedCommands("Overview", packages),
            DocumentedCommands("Overview", .script("scripts/check-embedding")),
            DocumentedCommands("With async sequences", .never("scripts/docs compiles the program above it")),
            DocumentedCommands("Without Foundation", .script("scripts/check-embedding")),
        ],
        "Sources/NetworkReachability/NetworkReachability.docc/WhyNotReachable.md": suite(
            "ReasonsDocumentedTests",
            [
                "A network to try it in", "noRoute", "unreachable", "prohibited", "blackhole", "noCarrier",
                "loopbackDown", "noInterface", "noSource", "notUnicast", "unresolved", "noNetlink",
            ]
        ),
    ]

    private static let packages = Rule.never("installs packages; scripts/setup does so before the build")

    private static func suite(_ name: String, _ headings: [String]) -> [DocumentedCommands] {
        headings.map { DocumentedCommands($0, .suite(name)) }
    }
}
