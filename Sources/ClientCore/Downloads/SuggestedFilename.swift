internal import Foundation
internal import FoundationNetworking

/// A name for a downloaded file that the server has a say in, but that cannot be more than a name.
///
/// The server's own (`Content-Disposition`), else the last part of the URL's path, else `download` with an
/// extension for the content type. It has no `/`, no control or text direction characters, does not begin
/// with a dot, a dash or a tilde (hidden files, options of commands, home directories), and is at most 255
/// bytes long, the longest name of Linux's file systems; the extension survives shortening.
///
/// Foundation's `suggestedFilename` knows neither `filename*` nor the URL on Linux, and would give `..`.
enum SuggestedFilename {
    private static let maximumBytes = 255
    /// How long what follows the last dot may be to be an extension.
    private static let maximumExtensionBytes = 32

    private static let extensions = [
        "application/gzip": "gz", "application/json": "json", "application/pdf": "pdf",
        "application/xml": "xml", "application/zip": "zip", "audio/mpeg": "mp3", "image/gif": "gif",
        "image/jpeg": "jpg", "image/png": "png", "image/svg+xml": "svg", "image/webp": "webp",
        "text/css": "css", "text/csv": "csv", "text/html": "html", "text/javascript": "js",
        "text/plain": "txt", "text/xml": "xml", "video/mp4": "mp4",
    ]

    /// The name for a response.
    static func of(_ response: HTTPURLResponse) -> String {
        of(
            contentDisposition: response.value(forHTTPHeaderField: "Content-Disposition"),
            url: response.url,
            contentType: response.value(forHTTPHeaderField: "Content-Type")
        )
    }

    /// The name for the fields of a response.
    ///
    /// - Parameters:
    ///   - contentDisposition: The field as the server sent it.
    ///   - url: What was asked for.
    ///   - contentType: The field as the server sent it.
    static func of(contentDisposition: String?, url: URL?, contentType: String?) -> String {
        contentDisposition.flatMap(ContentDisposition.filename).flatMap(sanitized)
            ?? (url?.lastPathComponent).flatMap(sanitized)
            ?? fallback(contentType)
    }

    private static func fallback(_ contentType: String?) -> String {
        let type = contentType?.split(separator: ";").first?.trimmingCharacters(in: .whitespaces).lowercased()
        return type.flatMap { extensions[$0] }.map { "download.\($0)" } ?? "download"
    }

    /// `nil` when nothing is left.
    private static func sanitized(_ text: String) -> String? {
        // Both: servers on Windows send whole paths.
        let last = text.unicodeScalars.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }
            .last!
        let visible = last.filter { !isUnsafe($0) }.drop { ".-~ ".unicodeScalars.contains($0) }
        let name = String(String.UnicodeScalarView(visible)).trimmingCharacters(in: .whitespaces)
        return name.isEmpty ? nil : shortened(name)
    }

    /// Control characters and line separators, and what turns the direction of the text, so that `gpj.exe` could
    /// be shown as `exe.jpg`.
    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > maximumBytes else { return name }
        let dot = name.unicodeScalars.lastIndex(of: ".") ?? name.endIndex
        let suffix = name[dot...].utf8.count <= maximumExtensionBytes ? name[dot...] : ""
        return prefix(of: name, bytes: maximumBytes - suffix.utf8.count) + suffix
    }

    /// As much of the text as fits, without cutting a scalar.
    private static func prefix(of text: String, bytes: Int) -> String {
        var prefix = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            count += UTF8.width(scalar)
            if count > bytes { break }
            prefix.append(scalar)
        }
        return String(prefix)
    }
}
