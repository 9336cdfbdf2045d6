internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The values that handlers receive: mapping them, and their descriptions.
@Suite struct ResponseTests {
    private struct Refused: Error {}

    private let request: URLRequest
    private let timeline = Timeline(
        requestStartTime: 1,
        initialResponseTime: 1.25,
        requestCompletedTime: 2,
        serializationCompletedTime: 2.125
    )
    private let metrics = RequestMetrics(
        taskInterval: DateInterval(start: Date(timeIntervalSinceReferenceDate: 0), duration: 0.12),
        redirectCount: 7
    )

    init() throws {
        var request = URLRequest(url: try #require(URL(string: "http://host/path")))
        request.httpMethod = "POST"
        request.httpBody = Data("sent".utf8)
        request.setValue("Basic c2VjcmV0", forHTTPHeaderField: "Authorization")
        self.request = request
    }

    private func response<T>(_ result: Result<T, any Error>, data: Data = Data("body".utf8)) -> DataResponse<
        T
    > {
        DataResponse(
            request: request,
            response: head(201, type: "text/plain"),
            data: data,
            result: result,
            timeline: timeline,
            metrics: metrics
        )
    }

    private func download<T>(_ result: Result<T, any Error>) -> DownloadResponse<T> {
        DownloadResponse(
            request: request,
            response: head(201),
            temporaryURL: URL(fileURLWithPath: "/tmp/a"),
            destinationURL: URL(fileURLWithPath: "/tmp/b"),
            resumeData: Data([1, 2]),
            result: result,
            timeline: timeline,
            metrics: metrics
        )
    }

    // MARK: Mapping

    @Test func `a value is mapped, and an error thrown by the transform is the result`() {
        let one = response(.success(1))
        #expect(one.map { "\($0)" }.value == "1")
        #expect(one.flatMap { $0 + 1 }.value == 2)
        #expect(one.flatMap { _ -> Int in throw Refused() }.error is Refused)
        #expect(one.tryMap { _ -> Int in throw Refused() }.error is Refused)
        #expect(one.mapError { _ in Refused() }.value == 1)
        #expect(one.tryMapError { _ in Refused() }.value == 1)
        let two = download(.success(2))
        #expect(two.map { "\($0)" }.value == "2")
        #expect(two.flatMap { _ -> Int in throw Refused() }.error is Refused)
        #expect(two.tryMap { $0 + 1 }.value == 3)
        #expect(two.flatMapError { _ in Refused() }.value == 2)
    }

    @Test func `a failure is not mapped, and its error can be mapped`() {
        let failed = response(Result<Int, any Error>.failure(URLError(.timedOut)))
        #expect((failed.map { "\($0)" }.error as? URLError)?.code == .timedOut)
        #expect((failed.flatMap { "\($0)" }.error as? URLError)?.code == .timedOut)
        #expect(failed.mapError { _ in Refused() }.error is Refused)
        #expect(failed.flatMapError { _ in Refused() }.error is Refused)
        #expect(failed.tryMapError { _ -> URLError in throw Refused() }.error is Refused)
        let download = download(Result<Int, any Error>.failure(URLError(.timedOut)))
        #expect((download.map { "\($0)" }.error as? URLError)?.code == .timedOut)
        #expect(download.mapError { _ in Refused() }.error is Refused)
        #expect(download.tryMapError { _ -> URLError in throw Refused() }.error is Refused)
    }

    @Test func `mapping keeps all other properties`() {
        let data = response(.success(1)).map { $0 }.flatMap { $0 }.mapError { _ in Refused() }
            .flatMapError { _ in Refused() }
        #expect(data.request == request)
        #expect(data.response?.statusCode == 201)
        #expect(data.data == Data("body".utf8))
        #expect(data.timeline == timeline)
        #expect(data.metrics?.redirectCount == 7)
        let download = download(.success(1)).map { $0 }.flatMap { $0 }.mapError { _ in Refused() }
            .flatMapError { _ in Refused() }
        #expect(download.request == request)
        #expect(download.response?.statusCode == 201)
        #expect(download.temporaryURL?.path == "/tmp/a")
        #expect(download.destinationURL?.path == "/tmp/b")
        #expect(download.resumeData == Data([1, 2]))
        #expect(download.timeline == timeline)
        #expect(download.metrics?.redirectCount == 7)
    }

    @Test func `a result returns its value or its error`() throws {
        let success = Result<Int, any Error>.success(1)
        let failure = Result<Int, any Error>.failure(Refused())
        var calls: [String] = []
        for (name, result) in [("success", success), ("failure", failure)] {
            result.withValue { calls.append("\(name) \($0)") }
                .withError { calls.append("\(name) \($0)") }
                .ifSuccess { calls.append("\(name) succeeded") }
                .ifFailure { calls.append("\(name) failed") }
        }
        #expect(calls == ["success 1", "success succeeded", "failure Refused()", "failure failed"])
        #expect(try success.unwrap() == 1)
        #expect(throws: Refused.self) { try failure.unwrap() }
    }

    // MARK: Descriptions

    @Test func `a response's description contains its result`() {
        #expect("\(response(.success(1)))" == "SUCCESS: 1")
        #expect("\(response(Result<Int, any Error>.failure(Refused())))" == "FAILURE: Refused()")
        #expect("\(download(.success(1)))" == "SUCCESS: 1")
    }

    @Test func `a debug description contains everything except credentials`() {
        #expect(
            response(.success(1)).debugDescription == """
                [Request]: POST http://host/path
                [Request Body]: sent
                [Response]: 201
                  Content-Type: "text/plain"
                [Response Body]: body
                [Result]: SUCCESS: 1
                [Timeline]: \(timeline.debugDescription)
                """
        )
        #expect(
            download(.success(1)).debugDescription == """
                [Request]: POST http://host/path
                [Request Body]: sent
                [Response]: 201
                [TemporaryURL]: /tmp/a
                [DestinationURL]: /tmp/b
                [ResumeData]: 2 bytes
                [Result]: SUCCESS: 1
                [Timeline]: \(timeline.debugDescription)
                """
        )
        let nothing = DataResponse<Int>(request: nil, response: nil, data: nil, result: .success(1))
        #expect(
            nothing.debugDescription.hasPrefix("[Request]: none\n[Request Body]: none\n[Response]: none\n")
        )
    }

    @Test func `descriptions contain no secrets of URLs and header fields`() throws {
        let url =
            "https://user:hush@host/path?code=hush&sid=hush&page=2&credential=hush&X-Amz-Credential=known"
            + "&my_token=hush"
        let request = URLRequest(url: try #require(URL(string: url)))
        let fields = [
            "Set-Cookie": "a=hush", "X-Refresh-Token": "hush", "X-Session-Id": "hush", "Server": "known",
        ]
        let response = DataResponse<Int>(
            request: request,
            response: HTTPURLResponse(
                url: try #require(request.url),
                statusCode: 200,
                httpVersion: nil,
                headerFields: fields
            ),
            data: nil,
            result: .success(1)
        )
        let expected =
            "https://host/path?code=REDACTED&sid=REDACTED&page=2&credential=REDACTED&X-Amz-Credential=known"
            + "&my_token=REDACTED"
        #expect(response.debugDescription.contains("GET \(expected)"))
        #expect(response.debugDescription.contains("Server: \"known\""))
        #expect(response.debugDescription.components(separatedBy: "\"REDACTED\"").count == 4)
        let session = SessionManager()
        session.startRequestsImmediately = false
        let described = session.request(request)
        #expect(described.description == "GET \(expected)")
        #expect(described.debugDescription.contains("user:hush@"), "the explicit form contains everything")
        let errors: [any Error] = [
            AFError.invalidURL(url: url),
            AFError.urlRequestValidationFailed(reason: .missingHost(try url.asURL())),
            TransferFailure(code: 7, phase: .connect, message: "refused").urlError(
                for: URL(string: "https://user:hush@host/")
            ),
        ]
        for text in [response.debugDescription] + errors.map(\.localizedDescription) + ["\(errors[2])"] {
            #expect(!text.contains("hush"), "\(text)")
        }
    }

    @Test func `descriptions contain no secrets of forms and JSON`() throws {
        var request = self.request
        request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        request.httpBody = Data("user=known&password=hush".utf8)
        let body = #"{"access_token": "hush", "scopes": [{"secret": "hush", "name": "known"}]}"#
        let json: Any = ["access_token": "hush", "name": "known"]
        func response<T>(_ value: T) -> DataResponse<T> {
            DataResponse(
                request: request,
                response: head(200, type: "application/json"),
                data: Data(body.utf8),
                result: .success(value)
            )
        }
        let text = response(body)
        let plain = DefaultDataResponse(
            request: request,
            response: text.response,
            data: text.data,
            error: nil
        )
        let described = ["\(text)", text.debugDescription, "\(response(json))", plain.debugDescription]
        for text in described {
            #expect(text.contains("known") && text.contains("REDACTED") && !text.contains("hush"), "\(text)")
        }
        #expect(text.debugDescription.contains("[Request Body]: user=known&password=REDACTED"))
        #expect("\(plain)" == "SUCCESS: \(body.utf8.count) bytes")
    }

    @Test func `a body without secrets is shown as it is`() {
        for body in ["{ \"b\": 1.0, \"a\": 2 }", "{\"token\": \"cut", "token=known", "[1]", ""] {
            let shown = BodyText.of(Data(body.utf8), contentType: "application/json")
            #expect(shown == (body.isEmpty ? "empty" : body))
        }
        #expect(BodyText.of(nil, contentType: nil) == "none")
        #expect(BodyText.of(Data([0x61, 0xFF]), contentType: nil) == "2 bytes that are not text")
    }

    @Test func `the size of a truncated body includes the redacted secrets`() {
        let secret = String(repeating: "hush", count: 1000)
        let end = String(repeating: "a", count: 3000)
        for (type, body) in [
            ("application/x-www-form-urlencoded", "token=\(secret)&end=\(end)"),
            ("text/plain", " {\"end\":\"\(end)\",\"token\":\"\(secret)\"}"),
        ] {
            let shown = BodyText.of(Data(body.utf8), contentType: type)
            #expect(shown.hasSuffix("aaa… (\(body.utf8.count) bytes in total)") && !shown.contains("hush"))
        }
    }

    @Test func `a task's description contains no secrets of its URL`() throws {
        let session = SessionManager()
        session.startRequestsImmediately = false
        let request = session.request("http://user:hush@host/?token=hush")
        let task = try #require(request.task)
        #expect("\(task)".hasSuffix(": GET http://host/?token=REDACTED"), "\(task)")
    }

    @Test func `the description contains a body only if it is text`() {
        #expect(BodyText.of(nil) == "none")
        #expect(BodyText.of(Data()) == "empty")
        #expect(BodyText.of(Data("a\tb\r\nc\u{1F600}".utf8)) == "a\tb\r\nc\u{1F600}")
        #expect(BodyText.of(Data([0x61, 0x1B, 0x5B])) == "3 bytes that are not text")
        #expect(BodyText.of(Data("\u{9B}2J".utf8)) == "4 bytes that are not text")
        #expect(BodyText.of(Data("a\r\n\t\u{202E}b".utf8)) == "a\r\n\t\\u{202E}b")
        #expect(BodyText.of(Data([0x61, 0xFF])) == "2 bytes that are not text")
        #expect(BodyText.of(Data([0x61, 0xC3])) == "2 bytes that are not text")
    }

    @Test(arguments: [0, 1, 2, 3])
    func `a long body is truncated between characters`(shift: Int) {
        let text = String(repeating: "a", count: shift) + String(repeating: "\u{1F600}", count: 600)
        let shown = BodyText.of(Data(text.utf8))
        let whole = (BodyText.limit - shift) / 4
        let expected = String(repeating: "a", count: shift) + String(repeating: "\u{1F600}", count: whole)
        #expect(shown == "\(expected)… (\(text.utf8.count) bytes in total)")
        #expect(BodyText.of(Data(repeating: 0x61, count: 2000)).count == 2000)
    }
}
