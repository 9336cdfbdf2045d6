internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// The responses that validation accepts and rejects.
@Suite struct ValidationTests {
    private func error(_ result: Request.ValidationResult) -> AFError? {
        if case .failure(let error) = result { error as? AFError } else { nil }
    }

    private func accepts(_ acceptable: [String], _ type: String?, body: String = "x") -> Bool {
        let response = head(type: type)
        let result = ResponseValidation.contentType(
            of: response,
            acceptable: acceptable,
            body: Data(body.utf8)
        )
        return error(result) == nil
    }

    // MARK: Statuses

    @Test func `the status must be in the sequence`() {
        func codes(_ codes: some Sequence<Int>) -> [Int] {
            let acceptable = AcceptableStatusCodes(codes)
            return [100, 199, 200, 204, 299, 300, 404, 999].filter { acceptable.contains($0) }
        }
        #expect(codes(200..<300) == [200, 204, 299])
        #expect(codes(200...300) == [200, 204, 299, 300])
        #expect(codes(300...) == [300, 404, 999])
        #expect(codes([404, 204]) == [204, 404])
        #expect(codes(Set([100])) == [100])
        #expect(codes(Int.min..<Int.max) == [100, 199, 200, 204, 299, 300, 404, 999])
        #expect(codes(Int.min...Int.max) == [100, 199, 200, 204, 299, 300, 404, 999])
        #expect(codes(stride(from: 0, to: 1000, by: 100)) == [100, 200, 300])
        #expect(codes(200..<200) == [])
    }

    @Test func `a single-pass sequence validates every attempt`() {
        let acceptable = AcceptableStatusCodes(AnyIterator([503, 200].makeIterator()))
        #expect(error(ResponseValidation.status(of: head(200), acceptable: acceptable)) == nil)
        #expect(error(ResponseValidation.status(of: head(503), acceptable: acceptable)) == nil)
    }

    @Test(arguments: [(199, false), (200, true), (299, true), (300, false), (404, false), (500, false)])
    func `200 to 299 are accepted by default`(status: Int, isAccepted: Bool) {
        let acceptable = ResponseValidation.defaultStatusCodes
        let error = error(ResponseValidation.status(of: head(status), acceptable: acceptable))
        #expect(error?.responseCode == (isAccepted ? nil : status))
        #expect((error == nil) == isAccepted)
    }

    // MARK: Content types

    @Test(
        arguments: [
            (["application/json"], "application/json", true),
            (["application/json"], "Application/JSON; charset=utf-8", true),
            (["application/json; q=0.5"], "application/json", true),
            (["application/json"], "application/json\t ;x", true),
            (["image/*"], "image/png", true), (["IMAGE/*"], "image/png", true),
            (["*/json"], "text/json", true), (["*/*"], "text/json", true),
            (["a/b", "text/*"], "text/json", true), (["image/*"], "text/png", false),
            (["*/json"], "text/plain", false), (["text/html"], "text/*", false),
            (["text/html"], "text/html, text/html", false), (["text/html"], "text", false),
            (["text/*"], "text/", false), (["*/png"], "/png", false), (["text/*"], "text/a/b", false),
            (["text"], "text", false), (["*"], "text/html", false), (["text/x y"], "text/x y", false),
            ([], "text/html", false), ([""], "", false),
        ]
    )
    func `a content type is matched by patterns`(acceptable: [String], type: String, isAccepted: Bool) {
        #expect(accepts(acceptable, type) == isAccepted)
    }

    @Test func `a missing or malformed type is accepted only if all types are`() {
        #expect(accepts(["text/html", "*/*"], nil))
        #expect(accepts(["*/*;q=0.1"], "no type"))
        #expect(!accepts(["text/*", "*/html"], nil))
    }

    @Test func `errors contain the accepted and the received type`() {
        let missing = error(
            ResponseValidation.contentType(of: head(), acceptable: ["a/b", "c/d"], body: Data([1]))
        )
        #expect(missing?.acceptableContentTypes == ["a/b", "c/d"])
        #expect(missing?.responseContentType == nil)
        let other = error(
            ResponseValidation.contentType(of: head(type: "E/f; g=h"), acceptable: ["a/b"], body: Data([1]))
        )
        #expect(other?.acceptableContentTypes == ["a/b"])
        #expect(other?.responseContentType == "E/f")
        let unreadable = error(
            ResponseValidation.contentType(of: head(type: "e"), acceptable: ["a/b"], body: Data([1]))
        )
        #expect(unreadable?.responseContentType == "e")
    }

    @Test func `an empty body matches every type`() {
        #expect(accepts(["image/png"], "text/html", body: ""))
        #expect(accepts(["image/png"], nil, body: ""))
        let none = ResponseValidation.contentType(of: head(), acceptable: ["a/b"], body: nil)
        #expect(error(none) == nil)
    }

    // MARK: Accept

    @Test(
        arguments: [
            (nil, ["*/*"]), ("", ["*/*"]), ("  ", ["*/*"]), ("text/html", ["text/html"]),
            ("text/html, image/*;q=0.5", ["text/html", "image/*;q=0.5"]),
            ("text/html ,,a/b; q=0", ["text/html"]), ("a/b;q=0.000,c/d;Q=0", []),
            ("a/b;x=\"1,2;q=0\",c/d", ["a/b;x=\"1,2;q=0\"", "c/d"]), ("a/b;q=x", ["a/b;q=x"]),
        ] as [(String?, [String])]
    )
    func `the accepted types are separated by commas`(accept: String?, types: [String]) {
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.setValue(accept, forHTTPHeaderField: "Accept")
        #expect(ResponseValidation.acceptableContentTypes(of: request) == types)
    }

    @Test func `without a request every type is accepted`() {
        #expect(ResponseValidation.acceptableContentTypes(of: nil) == ["*/*"])
    }

    // MARK: Files

    @Test func `a file is validated like a body`() throws {
        let directory = try ScratchDirectory()
        let file = URL(fileURLWithPath: directory.file("body"))
        func validated(_ file: URL?) -> AFError? {
            error(
                ResponseValidation.contentType(of: head(type: "a/b"), acceptable: ["c/d"], file: file)
            )
        }
        try Data().write(to: file)
        #expect(validated(file) == nil)
        try Data([1]).write(to: file)
        #expect(validated(file)?.responseContentType == "a/b")
        let gone = URL(fileURLWithPath: directory.file("gone"))
        #expect(validated(gone)?.url == gone)
        let remote = URL(string: "http://127.0.0.1:1\(file.path)")
        #expect(validated(remote)?.url == remote)
        guard case .responseValidationFailed(.dataFileNil) = validated(nil) else {
            Issue.record("a response without a file was accepted")
            return
        }
    }

    @Test func `validation does not wait for a pipe in place of a file`() throws {
        let directory = try ScratchDirectory()
        let path = directory.file("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let pipe = URL(fileURLWithPath: path)
        let result = ResponseValidation.contentType(of: head(), acceptable: ["a/b"], file: pipe)
        #expect(error(result) == nil)
    }
}
