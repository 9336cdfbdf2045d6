internal import Foundation
internal import NetwatchService

/// The output of `netwatch doctor`.
struct DoctorReport: Encodable {
    /// A finding with the name of its check.
    struct Entry: Encodable {
        let check: DoctorCheck
        let finding: DoctorFinding

        private enum CodingKeys: String, CodingKey {
            case check
        }

        func encode(to encoder: any Encoder) throws {
            try finding.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(check.rawValue, forKey: .check)
        }

        /// `store          problem  the database is damaged; what to do`
        var line: StyledText {
            let result = finding.result.rawValue
            let facts = [finding.message, finding.advice].compactMap(\.self).joined(separator: "; ")
            return StyledText(check.rawValue.padded(to: 13) + "  ") + StyledText(state: result)
                + StyledText(String(repeating: " ", count: 9 - result.count) + facts)
        }
    }

    var v = ControlMessage.version
    var type = "doctor"
    var time = Date()
    var checks: [Entry] = []

    var hasProblems: Bool { checks.contains { $0.finding.result == .problem } }
}
