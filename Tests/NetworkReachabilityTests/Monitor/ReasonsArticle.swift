internal import Foundation
internal import NetworkReachability
internal import Testing

/// The parsed article `WhyNotReachable.md`: its commands, the output that it shows for each command, and the status
/// that it shows after the commands.
struct ReasonsArticle: Sendable {
    struct Command: Sendable {
        let text: String
        var output: [String] = []
    }

    /// The commands of one section, and the status that the library must report after them.
    struct Reproduction: Sendable, CustomTestStringConvertible {
        let heading: String
        let commands: [Command]
        let status: String

        var testDescription: String { heading }
        var reason: PathStatus.Reason { PathStatus.Reason(rawValue: heading) }
        /// The host in the status: the text before the first colon with a space after it. An address contains colons
        /// without a space.
        var host: String { status.components(separatedBy: ": ")[0] }
        /// The commands that query the state. They have output.
        var questions: [Command] { commands.filter { !$0.output.isEmpty } }
        /// The commands that change the state. They have no output.
        var changes: [String] { commands.filter(\.output.isEmpty).map(\.text) }
    }

    /// The headings of the sections. Each is the name of a reason, except for the section that sets up the network.
    private(set) var headings: [String] = []
    private(set) var reproductions: [Reproduction] = []

    /// The first reproduction, which sets up the network from which all others start.
    var network: Reproduction { reproductions[0] }

    private static let sources = URL(filePath: #filePath)
        .appending(path: "../../../../Sources/NetworkReachability").standardized

    init() throws {
        let file = Self.sources.appending(path: "NetworkReachability.docc/WhyNotReachable.md")
        var language: String?
        var block: [String] = []
        var commands: [Command] = []
        for line in try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n") {
            if line.hasPrefix("### ") {
                headings.append(String(line.dropFirst(4)))
            } else if !line.hasPrefix("```") {
                block.append(line)
            } else if language == nil {
                language = String(line.dropFirst(3))
                block = []
            } else {
                if language == "console" { commands = Self.commands(block) }
                if language == "text" { add(commands, block) }
                language = nil
            }
        }
    }

    private mutating func add(_ commands: [Command], _ status: [String]) {
        reproductions.append(.init(heading: headings.last!, commands: commands, status: status.joined()))
    }

    private static func commands(_ lines: [String]) -> [Command] {
        lines.reduce(into: []) { commands, line in
            if line.hasPrefix("$ ") {
                commands.append(Command(text: String(line.dropFirst(2))))
            } else {
                commands[commands.count - 1].output.append(line)
            }
        }
    }

    /// Returns the names of all reasons that the library's source files declare.
    static func declaredReasons() throws -> Set<String> {
        let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)
        let swift = (files?.allObjects as? [URL] ?? []).filter { $0.pathExtension == "swift" }
        let texts = try swift.map { try String(contentsOf: $0, encoding: .utf8) }
        let extensions = texts.flatMap { $0.components(separatedBy: "\nextension ") }
            .filter { $0.hasPrefix("PathStatus.Reason {") }
        let declaration = /public static let (\w+) = Self\(rawValue: "(\w+)"\)/
        return Set(extensions.flatMap { $0.matches(of: declaration) }.map { String($0.1) })
    }
}
