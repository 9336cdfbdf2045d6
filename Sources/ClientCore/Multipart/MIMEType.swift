/// Content types by file name extension.
///
/// The table is built in, because not every Linux system has a type database. The types come from IANA's media type
/// registry. For a format that is not registered, the table has the type that browsers send.
package enum MIMEType {
    /// Returns the content type of a file.
    ///
    /// - Parameter pathExtension: The extension without the dot. Case is ignored.
    /// - Returns: The type, or `application/octet-stream` for an unknown extension (RFC 2046 §4.5.1).
    package static func of(pathExtension: String) -> String {
        types[pathExtension.lowercased()] ?? "application/octet-stream"
    }

    private static let types = [text, images, audio, video, documents, archives, fonts, data]
        .reduce(into: [:]) { all, some in all.merge(some) { first, _ in first } }

    private static let text = [
        "css": "text/css",
        "csv": "text/csv",
        "htm": "text/html",
        "html": "text/html",
        "ics": "text/calendar",
        "js": "text/javascript",
        "log": "text/plain",
        "markdown": "text/markdown",
        "md": "text/markdown",
        "mjs": "text/javascript",
        "rtf": "application/rtf",
        "text": "text/plain",
        "tsv": "text/tab-separated-values",
        "txt": "text/plain",
        "vcf": "text/vcard",
        "vtt": "text/vtt",
        "xhtml": "application/xhtml+xml",
    ]

    private static let images = [
        "apng": "image/apng",
        "avif": "image/avif",
        "bmp": "image/bmp",
        "gif": "image/gif",
        "heic": "image/heic",
        "heif": "image/heif",
        "ico": "image/vnd.microsoft.icon",
        "jpe": "image/jpeg",
        "jpeg": "image/jpeg",
        "jpg": "image/jpeg",
        "jxl": "image/jxl",
        "png": "image/png",
        "psd": "image/vnd.adobe.photoshop",
        "svg": "image/svg+xml",
        "tif": "image/tiff",
        "tiff": "image/tiff",
        "webp": "image/webp",
    ]

    private static let audio = [
        "aac": "audio/aac",
        "aif": "audio/aiff",
        "aiff": "audio/aiff",
        "flac": "audio/flac",
        "m4a": "audio/mp4",
        "mid": "audio/midi",
        "midi": "audio/midi",
        "mp3": "audio/mpeg",
        "oga": "audio/ogg",
        "ogg": "audio/ogg",
        "opus": "audio/ogg",
        "wav": "audio/wav",
        "weba": "audio/webm",
    ]

    private static let video = [
        "3gp": "video/3gpp",
        "avi": "video/x-msvideo",
        "flv": "video/x-flv",
        "m3u8": "application/vnd.apple.mpegurl",
        "m4v": "video/mp4",
        "mkv": "video/matroska",
        "mov": "video/quicktime",
        "mp4": "video/mp4",
        "mpeg": "video/mpeg",
        "mpg": "video/mpeg",
        "ogv": "video/ogg",
        "ts": "video/mp2t",
        "webm": "video/webm",
        "wmv": "video/x-ms-wmv",
    ]

    private static let documents = [
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "eml": "message/rfc822",
        "epub": "application/epub+zip",
        "odp": "application/vnd.oasis.opendocument.presentation",
        "ods": "application/vnd.oasis.opendocument.spreadsheet",
        "odt": "application/vnd.oasis.opendocument.text",
        "pdf": "application/pdf",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "ps": "application/postscript",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ]

    private static let archives = [
        "7z": "application/x-7z-compressed",
        "bz2": "application/x-bzip2",
        "deb": "application/vnd.debian.binary-package",
        "gz": "application/gzip",
        "jar": "application/java-archive",
        "rar": "application/vnd.rar",
        "rpm": "application/x-rpm",
        "tar": "application/x-tar",
        "tgz": "application/gzip",
        "xz": "application/x-xz",
        "zip": "application/zip",
        "zst": "application/zstd",
    ]

    private static let fonts = [
        "otf": "font/otf",
        "ttf": "font/ttf",
        "woff": "font/woff",
        "woff2": "font/woff2",
    ]

    private static let data = [
        "atom": "application/atom+xml",
        "cbor": "application/cbor",
        "geojson": "application/geo+json",
        "gpx": "application/gpx+xml",
        "json": "application/json",
        "jsonld": "application/ld+json",
        "kml": "application/vnd.google-earth.kml+xml",
        "p7m": "application/pkcs7-mime",
        "p12": "application/x-pkcs12",
        "parquet": "application/vnd.apache.parquet",
        "pem": "application/x-pem-file",
        "plist": "application/x-plist",
        "rss": "application/rss+xml",
        "sql": "application/sql",
        "sqlite": "application/vnd.sqlite3",
        "toml": "application/toml",
        "wasm": "application/wasm",
        "webmanifest": "application/manifest+json",
        "xml": "application/xml",
        "yaml": "application/yaml",
        "yml": "application/yaml",
    ]
}
