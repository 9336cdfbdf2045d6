internal import Foundation
internal import OfflineQueue
internal import Testing

/// The table of the causes for which a request is given up, in the documentation.
@Suite struct DeathCauseTests {
    private static let page = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "../../../Sources/OfflineQueue/OfflineQueue.docc/WhatFailuresMean.md"
    )

    /// Returns the names in the first column of that table.
    private func documented() throws -> [String] {
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        let section = try #require(
            text.components(separatedBy: "### Every way to be given up").dropFirst().first
        )
        return section.components(separatedBy: "\n###")[0].components(separatedBy: "\n## ")[0]
            .split(separator: "\n").filter { $0.hasPrefix("| `") }
            .map { String($0.dropFirst(3).prefix { $0 != "`" }) }
    }

    @Test func `the documentation lists the causes of the code`() throws {
        #expect(try documented() == DeathCause.allCases.map(\.rawValue))
    }
}
