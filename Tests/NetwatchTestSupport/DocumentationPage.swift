internal import Foundation

/// A page of the documentation, in Markdown.
package struct DocumentationPage {
    /// The path from the root of the repository.
    package let path: String
    package let text: String

    /// - Parameter path: The path from the root of the repository.
    package init(_ path: String) throws {
        self.path = path
        text = try Repository.text(path)
    }

    /// All pages of the repository.
    package static func all() throws -> [DocumentationPage] {
        let files = try ["docs", "systemd", "packaging", "Examples", "Sources"].flatMap {
            try Repository.files(in: $0, suffix: ".md")
        }
        return try (["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"] + files)
            .map(DocumentationPage.init)
    }

    /// The rows of all tables, as the texts of their cells.
    package var rows: [[String]] {
        text.split(separator: "\n").filter { $0.hasPrefix("|") && $0.hasSuffix("|") }.map { line in
            line.dropFirst().dropLast().split(separator: " | ", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// The code blocks, in their order.
    package var codeBlocks: [CodeBlock] {
        var heading = ""
        var fence: (indentation: Int, language: String)?
        var lines: [Substring] = []
        var blocks: [CodeBlock] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let content = line.drop { $0 == " " }
            if let open = fence {
                if content == "```" {
                    fence = nil
                    let text = lines.joined(separator: "\n")
                    blocks.append(CodeBlock(heading: heading, language: open.language, text: text))
                } else {
                    lines.append(line.dropFirst(open.indentation))
                }
            } else if content.hasPrefix("```") {
                fence = (line.count - content.count, String(content.dropFirst(3)))
                lines = []
            } else if line.hasPrefix("#") {
                heading = String(line.drop { $0 == "#" }.dropFirst())
            }
        }
        return blocks
    }

    /// The code blocks in a language, in their order.
    package func codeBlocks(in language: String) -> [CodeBlock] {
        codeBlocks.filter { $0.language == language }
    }

    /// Returns the commands of each code block in the language `sh` between a heading and the next one.
    package func commands(under heading: String) -> [String] {
        codeBlocks(in: "sh").filter { $0.heading == heading }.map(\.text)
    }

    /// A code block.
    package struct CodeBlock: Sendable {
        /// The text of the last heading before the block.
        package let heading: String
        /// The word after the opening fence; empty if there is none.
        package let language: String
        package let text: String
    }
}
