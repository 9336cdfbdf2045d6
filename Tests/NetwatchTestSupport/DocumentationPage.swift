internal import Foundation

/// A page of the documentation, in Markdown.
package struct DocumentationPage {
    package let text: String

    /// - Parameter path: The path from the root of the repository.
    package init(_ path: String) throws {
        text = try Repository.text(path)
    }

    /// The rows of all tables, as the texts of their cells.
    package var rows: [[String]] {
        text.split(separator: "\n").filter { $0.hasPrefix("|") && $0.hasSuffix("|") }.map { line in
            line.dropFirst().dropLast().split(separator: " | ", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// The code blocks in the language `sh`, in their order.
    package var shellBlocks: [ShellBlock] {
        var heading = ""
        var language: Substring?
        var lines: [Substring] = []
        var blocks: [ShellBlock] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if let open = language {
                if line != "```" {
                    lines.append(line)
                } else {
                    language = nil
                    guard open == "sh" else { continue }
                    blocks.append(ShellBlock(heading: heading, commands: lines.joined(separator: "\n")))
                }
            } else if line.hasPrefix("```") {
                (language, lines) = (line.dropFirst(3), [])
            } else if line.hasPrefix("#") {
                heading = String(line.drop { $0 == "#" }.dropFirst())
            }
        }
        return blocks
    }

    /// Returns the commands of each code block in the language `sh` between a heading and the next one.
    package func commands(under heading: String) -> [String] {
        shellBlocks.filter { $0.heading == heading }.map(\.commands)
    }

    /// A code block in the language `sh`.
    package struct ShellBlock {
        /// The text of the last heading before the block.
        package let heading: String
        package let commands: String
    }
}
