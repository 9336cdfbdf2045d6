internal import Foundation
internal import FoundationNetworking

/// Creates a safe file name for a download from the server's suggestion.
///
/// The name is the first of these that is not empty:
///
/// 1. the file name in `Content-Disposition`
/// 2. the last component of the URL's path
/// 3. `download`, with an extension for the content type
///
/// The name is safe in these ways:
///
/// - It contains no `/`, no control characters, and no characters that change the text direction.
/// - It does not begin with a dot (hidden files), a dash (command options) or a tilde (home directories).
/// - It has at most 255 bytes, the limit of Linux's file systems. A longer name is shortened before its extension.
///
/// Foundation's `suggestedFilename` is not used: on Linux it ignores `filename*` and the URL, and can return `..`.
enum SuggestedFilename {
    private static let maximumBytes = 255
    /// The maximum length of an extension in bytes, including its dot. Longer text after the last dot does not count as
    /// an extension.
    private static let maximumExtensionBytes = 32

    /// The extensions of content types.
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

    /// Returns the safe part of a name; `nil` if it is empty.
    private static func sanitized(_ text: String) -> String? {
        // Backslashes count as separators, too, because servers on Windows may send whole paths.
        let last = text.unicodeScalars.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }
            .last!
        let visible = last.filter { !isUnsafe($0) }.drop { ".-~ ".unicodeScalars.contains($0) }
        let name = String(String.UnicodeScalarView(visible)).trimmingCharacters(in: .whitespaces)
        return name.isEmpty ? nil : shortened(name)
    }

    /// Returns whether a scalar is a control character, a line separator, or changes the text direction. A change of
    /// direction can make `gpj.exe` look like `exe.jpg`.
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

    /// Returns the longest prefix with at most the given number of bytes in UTF-8, without splitting a scalar.
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
