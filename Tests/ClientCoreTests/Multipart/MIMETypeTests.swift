internal import ClientCore
internal import Testing

struct MIMETypeTests {
    @Test(arguments: [
        ("html", "text/html"), ("txt", "text/plain"), ("js", "text/javascript"), ("css", "text/css"),
        ("png", "image/png"), ("jpg", "image/jpeg"), ("svg", "image/svg+xml"), ("webp", "image/webp"),
        ("mp3", "audio/mpeg"), ("mp4", "video/mp4"), ("mov", "video/quicktime"),
        ("pdf", "application/pdf"), ("zip", "application/zip"), ("gz", "application/gzip"),
        ("woff2", "font/woff2"), ("json", "application/json"), ("xml", "application/xml"),
        ("csv", "text/csv"),
    ])
    func `an extension maps to a content type`(pathExtension: String, type: String) {
        #expect(MIMEType.of(pathExtension: pathExtension) == type)
    }

    @Test func `extensions ignore case`() {
        #expect(MIMEType.of(pathExtension: "JpEg") == "image/jpeg")
    }

    @Test(arguments: ["", "nothing", ".png", "png ", "\0", "пнг"])
    func `an unknown extension maps to application/octet-stream`(pathExtension: String) {
        #expect(MIMEType.of(pathExtension: pathExtension) == "application/octet-stream")
    }
}
