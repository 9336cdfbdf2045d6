internal import Foundation
internal import FoundationNetworking

/// A safe file name for a download, based on the server's suggestion.
///
/// It is taken from `Content-Disposition`, otherwise from the last component of the URL's path, otherwise it is
/// `download` with an extension for the content type. It contains no `/`, control characters or text direction
/// characters. It does not begin with a dot, a dash or a tilde (hidden files, command options, home directories). It
/// has at most 255 bytes, the limit of Linux's file systems; shortening keeps the extension.
///
/// Foundation's `suggestedFilename` on Linux supports neither `filename*` nor the URL, and would return `..`.
enum SuggestedFilename {
    private static let maximumBytes = 255
    /// The maximum length of an extension; longer text after the last dot does not count as one.
    private static let maximumExtensionBytes = 32

    private static let extensions = [
        "application/gzip": "gz", "application/json": "json", "application/pdf": "pdf",
        "application/xml": "xml", "application/zip": "zip", "audio/mpeg": "mp3", "image/gif": "gif",
        "image/jpeg": "jpg", "image/png": "png", "image/svg+xml": "svg", "image/webp": "webp",
        "text/css": "css", "text/csv": "csv", "text/html": "html", "text/javascript": "js",
        "text/plain": "txt", "text/xml": "xml", "video/mp4": "mp4",
    ]

    /// Returns the name for a response.
    static func of(_ response: HTTPURLResponse) -> String {
        of(
            contentDisposition: response.value(forHTTPHeaderField: "Content-Disposition"),
            url: response.url,
            contentType: response.value(forHTTPHeaderField: "Content-Type")
        )
    }

    /// Returns the name for the given response fields.
    ///
    /// - Parameters:
    ///   - contentDisposition: The field as the server sent it.
    ///   - url: The URL of the response.
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

    /// Returns `nil` if nothing is left.
    private static func sanitized(_ text: String) -> String? {
        // Both separators: servers on Windows send whole paths.
        let last = text.unicodeScalars.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }
            .last!
        let visible = last.filter { !isUnsafe($0) }.drop { ".-~ ".unicodeScalars.contains($0) }
        let name = String(String.UnicodeScalarView(visible)).trimmingCharacters(in: .whitespaces)
        return name.isEmpty ? nil : shortened(name)
    }

    /// Returns whether a scalar is a control character, a line separator, or changes the text direction, which could
    /// display `gpj.exe` as `exe.jpg`.
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

    /// Returns the longest prefix that fits, without splitting a scalar.
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
