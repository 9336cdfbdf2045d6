internal import Foundation
internal import Testing

@testable internal import netwatch

@Suite struct JSONTextTests {
    @Test func `characters that are not printable have escapes, and the values stay the same`() throws {
        let values = ["ä\n\u{1B}\u{7F}\u{9B}", "\u{202E}\u{2028}\"\\", "👩\u{200D}💻\u{E0041}\u{F7FF}"]
        let encoder = JSONEncoder()
        encoder.outputFormatting = .prettyPrinted
        let json = String(decoding: JSONText.printable(try encoder.encode(values)), as: UTF8.self)
        #expect(json.contains(#"\u007F\u009B""#) && json.contains(#""\u202E\u2028\"\\""#))
        #expect(json.contains(#"👩\u200D💻\uDB40\uDC41\uF7FF"#) && json.hasPrefix("[\n"))
        let decoded = try JSONDecoder().decode([String].self, from: Data(json.utf8))
        #expect(decoded.map { Array($0.unicodeScalars) } == values.map { Array($0.unicodeScalars) })
    }
}
