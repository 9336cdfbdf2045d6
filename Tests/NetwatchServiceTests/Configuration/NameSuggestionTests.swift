internal import Testing

@testable internal import NetwatchService

/// Suggestions for unknown commands, options and keys.
@Suite struct NameSuggestionTests {
    private static let commands = ["host", "history", "queue", "wait", "status"]

    @Test(arguments: [
        ("hots", "host"), ("qeuue", "queue"), ("statsu", "status"), ("hist", "history"), ("stat", "status"),
        ("histroy", "history"),
    ])
    func `a misspelled or shortened name is suggested`(word: String, name: String) {
        #expect(NameSuggestion.name(for: word, among: Self.commands) == name)
    }

    @Test(arguments: ["", "q", "mist", "fast", "frobnicate"])
    func `a word that is not similar to any name has no suggestion`(word: String) {
        #expect(NameSuggestion.name(for: word, among: Self.commands) == nil)
    }

    @Test(arguments: [("wet", "web", true), ("wat", "web", false), ("foo", "web", false)])
    func `a short name permits one edit`(word: String, name: String, isSimilar: Bool) {
        #expect(NameSuggestion.isSimilar(word, to: name) == isSimilar)
    }

    @Test(arguments: [
        ("", "abc", 3), ("abc", "", 3), ("abcd", "abdc", 1), ("abc", "xbz", 2), ("abc", "abc", 0),
    ])
    func `the distance counts edits and swaps`(left: String, right: String, distance: Int) {
        #expect(NameSuggestion.distance(left, right) == distance)
    }
}
