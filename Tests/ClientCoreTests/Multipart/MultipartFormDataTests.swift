internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// The encoding of multipart forms.
@Suite(.timeLimit(.minutes(5))) struct MultipartFormDataTests {
    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func text(_ form: MultipartFormData) throws -> String {
        String(decoding: try form.encode(), as: UTF8.self)
    }

    @Test func `the guide's form with two files is encoded`() throws {
        let unicornImageURL = try scratch.makeFile("unicorn.png", "unicorn")
        let rainbowImageURL = try scratch.makeFile("rainbow.JPG", "rainbow")
        let encode: @Sendable (MultipartFormData) -> Void = { multipartFormData in
            multipartFormData.append(unicornImageURL, withName: "unicorn")
            multipartFormData.append(rainbowImageURL, withName: "rainbow")
        }
        let form = MultipartFormData(boundary: "b")
        encode(form)
        let expected = """
            --b
            Content-Disposition: form-data; name="unicorn"; filename="unicorn.png"
            Content-Type: image/png

            unicorn
            --b
            Content-Disposition: form-data; name="rainbow"; filename="rainbow.JPG"
            Content-Type: image/jpeg

            rainbow
            --b--

            """
        #expect(try text(form) == expected.replacing("\n", with: "\r\n"))
        #expect(form.contentType == "multipart/form-data; boundary=b")
        #expect(form.contentLength == 14)
    }

    @Test func `parts from memory, from a file and from a stream keep their order`() throws {
        let file = try scratch.makeFile("plain", "2")
        let form = MultipartFormData(boundary: "b")
        form.append(Data("0".utf8), withName: "a")
        form.append(Data("1".utf8), withName: "b", mimeType: "text/plain; charset=utf-8")
        form.append(file, withName: "c", fileName: "x.csv", mimeType: "text/csv")
        form.append(Data("3".utf8), withName: "d", fileName: "y", mimeType: "a/b")
        form.append(
            InputStream(data: Data("4".utf8)),
            withLength: 1,
            name: "e",
            fileName: "z",
            mimeType: "c/d"
        )
        form.append(
            InputStream(data: Data("5".utf8)),
            withLength: 1,
            headers: ["X-Own": "1", "Content-Type": "e/f", "content-disposition": "form-data; name=\"f\""]
        )
        let expected = """
            --b
            Content-Disposition: form-data; name="a"

            0
            --b
            Content-Disposition: form-data; name="b"
            Content-Type: text/plain; charset=utf-8

            1
            --b
            Content-Disposition: form-data; name="c"; filename="x.csv"
            Content-Type: text/csv

            2
            --b
            Content-Disposition: form-data; name="d"; filename="y"
            Content-Type: a/b

            3
            --b
            Content-Disposition: form-data; name="e"; filename="z"
            Content-Type: c/d

            4
            --b
            content-disposition: form-data; name="f"
            Content-Type: e/f
            X-Own: 1

            5
            --b--

            """
        #expect(form.encodedLength == UInt64(expected.replacing("\n", with: "\r\n").utf8.count))
        #expect(try text(form) == expected.replacing("\n", with: "\r\n"))
    }

    @Test func `a form without parts contains only the final boundary`() throws {
        let form = MultipartFormData(boundary: "b")
        #expect(try text(form) == "--b--\r\n")
        #expect(form.encodedLength == 7)
        #expect(form.contentLength == 0)
    }

    @Test func `a file without an extension is application/octet-stream`() throws {
        let form = MultipartFormData()
        form.append(try scratch.makeFile("README"), withName: "a")
        #expect(try text(form).contains("filename=\"README\"\r\nContent-Type: application/octet-stream\r\n"))
    }

    // MARK: Boundaries

    @Test func `each form has its own boundary`() {
        let boundary = MultipartFormData().boundary
        #expect(boundary.wholeMatch(of: /netwatch\.boundary\.[0-9a-f]{16}/) != nil)
        #expect(MultipartFormData().boundary != boundary)
        #expect(MultipartBoundary.text(0xAB) == "netwatch.boundary.00000000000000ab")
    }

    @Test(arguments: ["", "a b", "a\r\nX: y", "\"", String(repeating: "x", count: 71)])
    func `a boundary that is not valid in the header is refused`(boundary: String) throws {
        let form = MultipartFormData(boundary: boundary)
        form.append(Data(), withName: "a")
        let reason = try #require(multipartFailureReason { try form.encode() })
        guard case .bodyPartHeaderInvalid("boundary", boundary) = reason else {
            Issue.record("\(reason)")
            return
        }
    }

    // MARK: Names

    @Test(arguments: [
        ("plain", "plain"),
        ("quo\"te", "quo%22te"),
        ("\r\nX-Evil: 1\r\n\r\n", "%0D%0AX-Evil: 1%0D%0A%0D%0A"),
        ("\"; filename=\"x", "%22; filename=%22x"),
        ("100%22", "100%22"),
        ("ü日本🦄", "ü日本🦄"),
        ("\"\u{301}\n\u{301}", "%22\u{301}%0A\u{301}"),
        ("C:\\a\\", "C:\\a%5C"),
        ("", ""),
    ])
    func `quotes in a name are escaped`(name: String, written: String) throws {
        let form = MultipartFormData(boundary: "b")
        form.append(Data(), withName: name, fileName: name, mimeType: "a/b")
        let lines = try text(form).split(separator: "\r\n", omittingEmptySubsequences: false)
        #expect(lines[1] == "Content-Disposition: form-data; name=\"\(written)\"; filename=\"\(written)\"")
        #expect(lines.count == 7)
    }

    @Test(arguments: ["\r\n", "text/plain\r\nX-Evil: 1", "a/b\n", "a/b\0", "a/b\u{7f}", ""])
    func `a content type with a control character is refused`(type: String) throws {
        let file = try scratch.makeFile("a")
        let appends: [(MultipartFormData) -> Void] = [
            { $0.append(Data(), withName: "a", mimeType: type) },
            { $0.append(Data(), withName: "a", fileName: "b", mimeType: type) },
            { $0.append(file, withName: "a", fileName: "b", mimeType: type) },
            { $0.append(InputStream(data: Data()), withLength: 0, name: "a", fileName: "b", mimeType: type) },
            { $0.append(InputStream(data: Data()), withLength: 0, headers: ["Content-Type": type]) },
        ]
        for append in appends {
            let form = MultipartFormData()
            append(form)
            let reason = try #require(multipartFailureReason { try form.encode() })
            guard case .bodyPartHeaderInvalid("Content-Type", type) = reason else {
                Issue.record("\(reason)")
                return
            }
        }
    }

    @Test func `NUL in a name, and a field name that is not a token, are refused`() throws {
        let appends: [(name: String, value: String, append: (MultipartFormData) -> Void)] = [
            ("name", "a\0", { $0.append(Data(), withName: "a\0") }),
            ("filename", "b\0", { $0.append(Data(), withName: "a", fileName: "b\0", mimeType: "a/b") }),
            ("X Y", "1", { $0.append(InputStream(data: Data()), withLength: 0, headers: ["X Y": "1"]) }),
            ("", "1", { $0.append(InputStream(data: Data()), withLength: 0, headers: ["": "1"]) }),
        ]
        for (name, value, append) in appends {
            let form = MultipartFormData()
            append(form)
            let reason = try #require(multipartFailureReason { try form.encode() })
            guard case .bodyPartHeaderInvalid(name, value) = reason else {
                Issue.record("\(reason)")
                return
            }
        }
    }

    // MARK: Encoding repeatedly, and to a file

    @Test func `encoding in memory and to a file returns the same bytes each time`() throws {
        let form = MultipartFormData()
        form.append(try scratch.makeFile("a", String(repeating: "line\r\n", count: 50_000)), withName: "a")
        form.append(Data(repeating: 0xff, count: 100_000), withName: "b")
        let first = try form.encode()
        #expect(try form.encode() == first)
        for name in ["one", "two"] {
            let url = URL(fileURLWithPath: scratch.file(name))
            try form.writeEncodedData(to: url)
            #expect(try Data(contentsOf: url) == first)
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        #expect(form.encodedLength == UInt64(first.count))
        #expect(form.contentLength == 400_000)
    }

    @Test func `a form with a large file is encoded in small pieces`() throws {
        let url = try scratch.makeFile("large")
        try #require(truncate(url.path, 5 << 30) == 0)
        let form = MultipartFormData(boundary: "b")
        form.append(url, withName: "a")
        #expect(form.contentLength == 5 << 30)
        #expect(form.encodedLength > 5 << 30)
        try #require(truncate(url.path, 1 << 20) == 0)
        var pieces: [Int] = []
        try MultipartFile(url).read { pieces.append($0.count) }
        #expect(pieces.reduce(0, +) == 1 << 20)
        #expect(pieces.allSatisfy { $0 <= 65536 })
    }

    @Test func `a temporary file is marked and locked while the form is written`() throws {
        let directory = scratch.file("netwatch-downloads-\(geteuid())")
        var marks: [Bool] = []
        let stream = ObservedStream {
            for name in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [] {
                var status = stat()
                lstat("\(directory)/\(name)", &status)
                marks.append(status.st_mode & S_ISVTX != 0)
                PartialFile.removeIfAbandoned("\(directory)/\(name)")
            }
        }
        let form = MultipartFormData()
        form.append(stream, withLength: 0, name: "a", fileName: "b", mimeType: "c/d")
        let file = try form.writeTemporaryFile(in: scratch.path)
        #expect(marks == [true])
        #expect(try Data(contentsOf: file.url).count == Int(form.encodedLength))
    }

    @Test func `a stream can be encoded only once`() throws {
        let form = MultipartFormData()
        let stream = InputStream(data: Data("x".utf8))
        form.append(stream, withLength: 1, name: "a", fileName: "b", mimeType: "c/d")
        _ = try form.encode()
        let error = #expect(throws: AFError.self) { try form.encode() }
        #expect((error?.underlyingError as? URLError)?.code == .requestBodyStreamExhausted)
    }

    @Test func `the length of a form is limited to UInt64.max`() throws {
        let form = MultipartFormData()
        for _ in 0..<2 {
            form.append(
                InputStream(data: Data()),
                withLength: .max,
                name: "a",
                fileName: "b",
                mimeType: "c/d"
            )
        }
        #expect(form.contentLength == .max)
        #expect(form.encodedLength == .max)
        let error = #expect(throws: AFError.self) { try form.encode() }
        #expect((error?.underlyingError as? AFError.UnexpectedInputStreamLength)?.bytesExpected == .max)
    }
}

/// An empty stream that calls a closure when it is read.
private final class ObservedStream: InputStream {
    private let onRead: () -> Void

    init(_ onRead: @escaping () -> Void) {
        self.onRead = onRead
        super.init(data: Data())
    }

    override func open() {}
    override func close() {}
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        onRead()
        return 0
    }
}

/// Returns the reason why a form was not encoded; `nil` if it was.
func multipartFailureReason(_ encode: () throws -> Data) -> AFError.MultipartEncodingFailureReason? {
    do {
        _ = try encode()
        return nil
    } catch AFError.multipartEncodingFailed(let reason) {
        return reason
    } catch {
        Issue.record("\(error)")
        return nil
    }
}
