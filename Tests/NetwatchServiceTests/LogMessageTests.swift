internal import Logging
internal import NetwatchTestSupport
internal import Testing

/// docs/operations.md lists the messages that the service logs. The tests read them from the sources.
struct LogMessageTests {
    /// A message in the sources: its texts between interpolated values.
    private struct Message: CustomStringConvertible {
        let level: String
        let parts: [Substring]

        var description: String { "\(level): \(parts.joined(separator: "…"))" }

        init(level: some StringProtocol, text: some StringProtocol) {
            self.level = String(level)
            parts = text.split(separator: Self.value).map { Substring($0) }
        }

        /// Stands for an interpolated value in a source.
        static let value: Character = "\u{0}"

        /// Whether a row of the page has the level, and the texts in their order.
        func isListed(in rows: [[String]]) -> Bool {
            rows.contains { row in
                guard row.count == 3, row[0] == level else { return false }
                var rest = row[1][...]
                return parts.allSatisfy { part in
                    guard let found = rest.firstRange(of: part) else { return false }
                    rest = rest[found.upperBound...]
                    return true
                }
            }
        }
    }

    /// The properties and functions whose texts the service logs as warnings.
    private static let origins = [
        ("Sources/OfflineQueue/Database/LogFile.swift", "var note: String?"),
        ("Sources/OfflineQueue/SQLite/SQLiteQueueStore.swift", "func missingKeys("),
        ("Sources/OfflineQueue/Encryption/Sealer.swift", "func requireUnlocked("),
        ("Sources/OfflineQueue/Engine/OfflineQueue+BackgroundTasks.swift", "func checkDisk("),
        ("Sources/OfflineQueue/Engine/OfflineQueue+BackgroundTasks.swift", "func reseal("),
        ("Sources/OfflineQueue/Engine/OfflineQueue+BackgroundTasks.swift", "func scanStore("),
        ("Sources/NetwatchTransport/Curl/TransferCapabilities.swift", "var shortcomings: [String]"),
        ("Sources/NetwatchService/Credentials/CredentialFileReader.swift", "func fault("),
        ("Sources/NetwatchService/Hooks/Hook.swift", "var fault: String?"),
        ("Sources/NetwatchService/Credentials/CredentialDirectory.swift", "func warning("),
    ]

    /// The variables that the service logs without own words. Their texts come from ``origins``, except those of
    /// `problem`: the faults of the configuration.
    private static let variables: Set<Substring> = ["fault", "note", "warning", "problem", "shortcoming"]

    /// Returns a source with each interpolation replaced by a character, and without line breaks in string literals.
    private static func source(_ path: String) throws -> String {
        try Repository.text(path)
            .replacing(/\\\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/, with: String(Message.value))
            .replacing(/\\\n\s*/, with: "")
    }

    /// Returns the texts with spaces in a property or function, which ends at the first brace with its indentation.
    private static func texts(of declaration: String, in path: String) throws -> [Substring] {
        let rest = try source(path).split(separator: declaration, maxSplits: 1).dropFirst().first
        let body = try #require(rest).split(separator: "\n    }\n")[0]
        return body.matches(of: /"""\s*([^"]*?)\s*"""|"([^"\n]*)"/).compactMap { $0.1 ?? $0.2 }
            .filter { $0.contains(" ") }
    }

    /// Returns the warnings of a property or function.
    private static func warnings(of declaration: String, in path: String) throws -> [Message] {
        try texts(of: declaration, in: path).map { Message(level: "warning", text: $0) }
    }

    /// Returns the messages in the calls of the service's logger.
    private static func messages() throws -> [Message] {
        try Repository.swiftFiles(in: "Sources/NetwatchService").flatMap { path in
            try source(path).matches(of: /logger\.([a-z]+)\(\s*"([^"]*)"/).map {
                Message(level: $0.1, text: $0.2)
            }
        }
    }

    @Test func `the page lists every message of the service`() throws {
        let messages = try Self.messages()
        #expect(messages.count > 20)
        let rows = try DocumentationPage("docs/operations.md").rows
        #expect(messages.filter { !$0.isListed(in: rows) }.map(\.description) == [])
    }

    @Test(arguments: Self.origins)
    func `the page lists every warning of a declaration`(path: String, declaration: String) throws {
        let warnings = try Self.warnings(of: declaration, in: path)
        #expect(!warnings.isEmpty)
        let rows = try DocumentationPage("docs/operations.md").rows
        #expect(warnings.filter { !$0.isListed(in: rows) }.map(\.description) == [])
    }

    @Test func `the page lists only messages of the service`() throws {
        let warnings = try Self.origins.flatMap { try Self.warnings(of: $0.1, in: $0.0) }
        let messages = try (Self.messages() + warnings).filter { !$0.parts.isEmpty }
        let rows = try DocumentationPage("docs/operations.md").rows
            .filter { $0.count == 3 && Logger.Level(rawValue: $0[0]) != nil }
        #expect(rows.count > 20)
        let unknown = rows.filter { row in !messages.contains { $0.isListed(in: [row]) } }
        // The faults of the configuration, whose texts have nothing in common but the place.
        #expect(unknown.map { $0[1] } == ["`FILE:LINE:COLUMN: …`"])
    }

    @Test func `the origin of every message without own words is known`() throws {
        var found: Set<Substring> = []
        for path in try Repository.swiftFiles(in: "Sources/NetwatchService") {
            let text = try Repository.text(path)
            found.formUnion(text.matches(of: /logger\.[a-z]+\(\s*"\\\(([^()]*)\)"/).map { $0.1 })
        }
        #expect(found.isSubset(of: Self.variables), "\(found)")
    }
}
