internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Forms that third-party software parses.
@Suite(.timeLimit(.minutes(5))) struct MultipartReaderTests {
    /// A part as the parser has read it.
    private struct Found: Codable, Equatable {
        let name: String
        let fileName: String?
        let type: String?
        let body: Data
    }

    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory()
    }

    /// A script that parses a form with Werkzeug, which shares no code with the encoder under test.
    private static let reader = """
        import base64, json, sys
        from werkzeug.sansio.multipart import *

        for path in sys.argv[2:]:
            decoder = MultipartDecoder(sys.argv[1].encode())
            with open(path, "rb") as file:
                decoder.receive_data(file.read())
            decoder.receive_data(None)
            parts, body = [], b""
            while True:
                event = decoder.next_event()
                if isinstance(event, (Field, File)):
                    parts.append({"name": event.name, "body": b""})
                    parts[-1]["fileName"] = getattr(event, "filename", None)
                    parts[-1]["type"] = event.headers.get("content-type")
                elif isinstance(event, Data):
                    parts[-1]["body"] += event.data
                elif isinstance(event, Preamble):
                    assert not event.data
                else:
                    assert isinstance(event, Epilogue), event
                    break
            for part in parts:
                part["body"] = base64.b64encode(part["body"]).decode()
            print(json.dumps(parts))
        """

    @Test func `a parser finds the parts of random forms`() async throws {
        let seed =
            ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap(UInt64.init)
            ?? .random(in: 0...(.max))
        var generator = SeededGenerator(seed: seed)
        var paths: [String] = []
        var expected: [[Found]] = []
        let boundary = MultipartBoundary.text(generator.next())
        for number in 0..<150 {
            let form = MultipartFormData(boundary: boundary)
            let parts = randomParts(&generator, boundary)
            for (index, part) in parts.enumerated() {
                try add(part, to: form, file: scratch.file("part-\(number)-\(index)"))
            }
            let length = form.encodedLength
            paths.append(scratch.file("form-\(number)"))
            try form.writeEncodedData(to: URL(fileURLWithPath: paths[number]))
            #expect(try Data(contentsOf: URL(fileURLWithPath: paths[number])).count == Int(length))
            expected.append(parts.map(asWritten))
        }
        let outcome = try await Subprocess("/usr/bin/python3", ["-c", Self.reader, boundary] + paths)
            .outcome()
        try #require(outcome.ending == .exited(0), "seed \(seed): \(outcome.errors)")
        for (line, parts) in zip(outcome.output, expected) {
            let found = try JSONDecoder().decode([Found].self, from: Data(line.utf8))
            #expect(found == parts, "seed \(seed)")
        }
        #expect(outcome.output.count == expected.count)
    }

    /// Appends a part. A part without a file name or without a type is appended as data. The others are appended as
    /// data, as files and as streams, one third each.
    private func add(_ part: Found, to form: MultipartFormData, file: String) throws {
        guard let fileName = part.fileName, let type = part.type else {
            form.append(part.body, withName: part.name, mimeType: part.type)
            return
        }
        switch part.body.count % 3 {
        case 0: form.append(part.body, withName: part.name, fileName: fileName, mimeType: type)
        case 1:
            let url = URL(fileURLWithPath: file)
            try part.body.write(to: url)
            form.append(url, withName: part.name, fileName: fileName, mimeType: type)
        default:
            form.append(
                InputStream(data: part.body),
                withLength: UInt64(part.body.count),
                name: part.name,
                fileName: fileName,
                mimeType: type
            )
        }
    }

    private func randomParts(_ generator: inout SeededGenerator, _ boundary: String) -> [Found] {
        (0..<Int.random(in: 0...5, using: &generator)).map { _ in
            let isFile = Bool.random(using: &generator)
            let types = ["text/plain", "application/octet-stream", "image/png", "text/x; charset=\"utf-8\""]
            return Found(
                name: randomName(&generator),
                fileName: isFile ? "f" + randomName(&generator) : nil,
                type: isFile || Bool.random(using: &generator) ? types.randomElement(using: &generator) : nil,
                body: randomBody(&generator, boundary)
            )
        }
    }

    /// Returns a random name. A backslash in it is never followed by a character with which it would form an escape
    /// sequence.
    private func randomName(_ generator: inout SeededGenerator) -> String {
        let pieces = [
            "a", "Z", "\"", "\r", "\n", "\r\n", "%", ";", "=", " ", "'", "\\x", "ü", "🦄", "\u{301}", ":",
            "--", "\t",
        ]
        return (0..<Int.random(in: 0...12, using: &generator))
            .map { _ in pieces.randomElement(using: &generator)! }
            .joined()
    }

    private func randomBody(_ generator: inout SeededGenerator, _ boundary: String) -> Data {
        let almost = ["\r\n--", "\r\n", "--", boundary, "\r\n--\(boundary.dropLast())", "\r", "\n", "\0"]
        var body = Data()
        for _ in 0..<Int.random(in: 0...8, using: &generator) {
            if Bool.random(using: &generator) {
                body += Data(almost.randomElement(using: &generator)!.utf8)
                // The added byte ensures that the boundary does not occur at the beginning of a line. Real boundaries
                // do not occur in a part because they are random.
                body += Data("x".utf8)
            } else {
                body += (0..<Int.random(in: 0...300, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
            }
        }
        return body
    }

    private func asWritten(_ part: Found) -> Found {
        func escaped(_ text: String) -> String {
            text.replacingOccurrences(of: "\"", with: "%22", options: .literal)
                .replacingOccurrences(of: "\r", with: "%0D", options: .literal)
                .replacingOccurrences(of: "\n", with: "%0A", options: .literal)
        }
        return Found(
            name: escaped(part.name),
            fileName: part.fileName.map(escaped),
            type: part.type,
            body: part.body
        )
    }

    @Test func `httpbin finds the fields and files of a form`() async throws {
        let (server, url) = try await httpbin()
        defer { server.signal(15) }
        let form = MultipartFormData()
        let photo = URL(fileURLWithPath: scratch.file("photo.png"))
        try Data([0x89, 0x50, 0, 0xff]).write(to: photo)
        form.append(Data("Ada \"Countess\" Lovelace\r\n".utf8), withName: "name")
        form.append(Data("text".utf8), withName: "note", fileName: "a\"b.txt", mimeType: "text/plain")
        form.append(photo, withName: "photo")
        let body = URL(fileURLWithPath: scratch.file("body"))
        try form.writeEncodedData(to: body)
        let outcome = try await Subprocess(
            "/usr/bin/curl",
            [
                "-q", "-sS", "--noproxy", "*", "-H", "Content-Type: \(form.contentType)",
                "--data-binary", "@\(body.path)", "\(url)/post",
            ]
        ).outcome()
        struct Echo: Decodable {
            let form: [String: String]
            let files: [String: String]
        }
        let echo = try JSONDecoder().decode(
            Echo.self,
            from: Data(outcome.output.joined(separator: "\n").utf8)
        )
        #expect(echo.form == ["name": "Ada \"Countess\" Lovelace\r\n"])
        #expect(echo.files["note"] == "text")
        #expect(echo.files["photo"] == "data:image/png;base64,iVAA/w==")
        #expect(echo.files.count == 2)
    }

    /// Starts httpbin, and returns the process and the address that httpbin prints to its log.
    private func httpbin() async throws -> (Subprocess, String) {
        let server = try Subprocess(
            "/usr/bin/gunicorn",
            ["--bind", "127.0.0.1:0", "--threads", "2", "httpbin:app"]
        )
        let address = { @Sendable (lines: [String]) in
            lines.lazy.compactMap { $0.firstMatch(of: /Listening at: (http:\S+)/)?.1 }.first.map(String.init)
        }
        do {
            try await server.errors.wait { address($0) != nil }
        } catch {
            server.signal(15)
            throw error
        }
        return (server, try #require(address(server.errors.values)))
    }
}
