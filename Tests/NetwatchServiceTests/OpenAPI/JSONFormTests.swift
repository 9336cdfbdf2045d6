internal import Foundation
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// Examples of the JSON forms of the control API. Each has all members that its type may have, so a member that a type
/// loses, renames or writes in another way is seen here.
@Suite struct JSONFormTests {
    private static let types: [(name: String, type: any (Codable & Sendable).Type)] = [
        ("details", ControlMessage.Shown.self), ("flushed", ControlMessage.Flushed.self),
        ("list", ControlMessage.List.self), ("send", ControlMessage.Send.self),
        ("sent", ControlMessage.Sent.self), ("statistics", QueueStatistics.self),
    ]

    @Test(arguments: types.indices)
    func `an example is the same after it was decoded and encoded`(index: Int) throws {
        let (name, type) = Self.types[index]
        let file = URL(filePath: #filePath).appending(path: "../../../JSONForms/\(name).json").standardized
        let example = try Data(contentsOf: file)
        let message = try ControlMessage.decoder.decode(type, from: example)
        #expect(try text(ControlMessage.encoder.encode(message)) == text(example))
    }

    private func text(_ data: Data) throws -> String {
        let options: JSONSerialization.WritingOptions = [
            .prettyPrinted, .sortedKeys, .withoutEscapingSlashes,
        ]
        let object = try JSONSerialization.jsonObject(with: data)
        return String(
            decoding: try JSONSerialization.data(withJSONObject: object, options: options),
            as: UTF8.self
        )
    }
}
