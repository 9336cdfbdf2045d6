internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The texts of errors, which programs print and log, contain no secrets.
@Suite(.timeLimit(.minutes(5))) struct ErrorSecretsTests {
    private static let text =
        "https://user:hush@host/path?token=hush&sig=hush&page=2;token=hush#access_token=hush"
    private let url: URL
    private let failure = TransferFailure(code: 28, phase: .response, message: "the response is late")

    init() throws {
        url = try #require(URL(string: Self.text))
    }

    /// Errors of every case of ``AFError``, with secrets wherever netwatch could put a URL or a header field.
    private var errors: [AFError] {
        let cause = AFError.invalidURL(url: Self.text)
        let parameterReasons: [AFError.ParameterEncodingFailureReason] = [
            .missingURL, .jsonEncodingFailed(error: cause), .propertyListEncodingFailed(error: cause),
            .customEncodingFailed(error: cause),
        ]
        var errors: [AFError] = [
            cause, .invalidURL(url: url),
            .responseValidationFailed(reason: .dataFileReadFailed(at: url)),
            .responseSerializationFailed(reason: .inputFileReadFailed(at: url)),
            .responseSerializationFailed(reason: .decodingFailed(error: cause)),
            .downloadedFileMoveFailed(error: cause, source: url, destination: url),
            .downloadResumeFailed(reason: .partialFileMissing(at: url)),
            .fileFailed(error: cause, url: url),
            .sessionConfigurationRefused(property: "property"),
            .serverTrustEvaluationFailed(reason: .noRequiredEvaluator(host: "host")),
            .sessionDeinitialized,
        ]
        errors += requestReasons.map { AFError.urlRequestValidationFailed(reason: $0) }
        errors += parameterReasons.map { AFError.parameterEncodingFailed(reason: $0) }
        errors += formReasons.map { AFError.multipartEncodingFailed(reason: $0) }
        errors += redirectReasons.map { AFError.redirectRefused(reason: $0) }
        return errors
    }

    private var requestReasons: [AFError.URLRequestValidationFailureReason] {
        [
            .invalidMethod("A B"), .invalidHeader(name: "Authorization", value: "Bearer hush\n"),
            .invalidHeader(name: "Authorization", value: "hush"), .bodyDataInGETRequest(Data("hush".utf8)),
            .unsupportedScheme(url), .missingHost(url),
            .invalidOption(name: "priority", value: "2", accepted: "0 to 1"),
        ]
    }

    private var formReasons: [AFError.MultipartEncodingFailureReason] {
        let cause = AFError.invalidURL(url: Self.text)
        return [
            .bodyPartURLInvalid(url: url), .bodyPartFilenameInvalid(in: url),
            .bodyPartFileNotReachable(at: url),
            .bodyPartFileNotReachableWithError(atURL: url, error: cause), .bodyPartFileIsDirectory(at: url),
            .bodyPartFileSizeNotAvailable(at: url),
            .bodyPartFileSizeQueryFailedWithError(forURL: url, error: cause),
            .bodyPartInputStreamCreationFailed(for: url), .outputStreamCreationFailed(for: url),
            .outputStreamFileAlreadyExists(at: url), .outputStreamURLInvalid(url: url),
            .outputStreamWriteFailed(error: cause), .inputStreamReadFailed(error: cause),
            .bodyPartHeaderInvalid(name: "name", value: "a\n"),
        ]
    }

    private var redirectReasons: [AFError.RedirectRefusalReason] {
        [.insecure(from: url, to: url), .bodyToOtherOrigin(from: url, to: url)]
    }

    /// The cases of ``AFError``. The switch in ``kind(of:)`` does not compile if one is missing.
    private enum Kind: CaseIterable {
        case invalidURL, request, parameters, form, validation, serialization, move, resume, file
        case configuration, redirect, trust, session
    }

    private func kind(of error: AFError) -> Kind {
        switch error {
        case .invalidURL: .invalidURL
        case .urlRequestValidationFailed: .request
        case .parameterEncodingFailed: .parameters
        case .multipartEncodingFailed: .form
        case .responseValidationFailed: .validation
        case .responseSerializationFailed: .serialization
        case .downloadedFileMoveFailed: .move
        case .downloadResumeFailed: .resume
        case .fileFailed: .file
        case .sessionConfigurationRefused: .configuration
        case .redirectRefused: .redirect
        case .serverTrustEvaluationFailed: .trust
        case .sessionDeinitialized: .session
        }
    }

    /// Returns all texts in which a program can print an error.
    private func texts(_ error: any Error) -> [String] {
        let result = Result<Int, any Error>.failure(error)
        let data = DataResponse<Int>(request: nil, response: nil, data: nil, result: result)
        let download = DownloadResponse<Int>(
            request: nil,
            response: nil,
            temporaryURL: nil,
            destinationURL: nil,
            resumeData: nil,
            result: result
        )
        let plain = DefaultDataResponse(request: nil, response: nil, data: nil, error: error)
        return [
            "\(error)", "\(error as NSError)", String(reflecting: error), error.localizedDescription,
            "\(result)", result.debugDescription, "\([error])", "\(data)", data.debugDescription,
            "\(download)", download.debugDescription, "\(plain)", plain.debugDescription,
        ]
    }

    @Test func `no text of an AFError contains a secret`() {
        #expect(Set(errors.map(kind(of:))) == Set(Kind.allCases))
        for error in errors {
            for text in texts(error) { #expect(!text.contains("hush"), "\(kind(of: error))") }
            #expect("\(error)" == error.localizedDescription)
        }
    }

    @Test func `no text of a reason contains a secret`() {
        let reasons = requestReasons.map(\.description) + formReasons.map(\.description)
        for text in reasons + redirectReasons.map(\.description) { #expect(!text.contains("hush")) }
        #expect("\(requestReasons[5])".contains("page=2"))
    }

    @Test func `no text of a URLError contains a secret, and other parts of its URL are unchanged`() {
        let error = failure.urlError(for: url)
        for text in texts(error) { #expect(!text.contains("hush"), "\(text)") }
        let failing = error.failingURL?.absoluteString
        let items = "token=REDACTED&sig=REDACTED&page=2;token=REDACTED#access_token=REDACTED"
        #expect(failing == "https://host/path?\(items)")
        let other = URL(string: "http://host:80/a%2Fb?q=%7B1%7D&&x=%5B#f")
        #expect(other != nil && failure.urlError(for: other).failingURL == other)
    }

    @Test func `no text of another error contains a secret`() throws {
        let scheme = try #require(URL(string: "ftp://user:hush@host/?token=hush"))
        let errors: [(any Error)?] = [
            Self.thrown { _ = try HTTPProbe(url: scheme.absoluteString) },
            Self.thrown { _ = try HTTPProbe(url: "http://user:hush@[::1/?token=hush") },
            Self.thrown { _ = try HTTPProbe(url: "http://user:a/hush@host/") },
            AFError.invalidURL(url: "http://user:a#hush@host/"),
            Self.thrown { _ = try CookieFile.path(of: url) },
            Self.thrown { _ = try url.localPath() },
        ]
        for error in errors {
            let error = try #require(error)
            for text in texts(error) { #expect(!text.contains("hush"), "\(text)") }
        }
    }

    private static func thrown(_ body: () throws -> Void) -> (any Error)? {
        do { try body() } catch { return error }
        return nil
    }

    @Test func `a printed response of a refused connection contains no secret`() async throws {
        let port = try RefusingPort()
        let session = SessionManager(engine: try TransferEngine())
        let request = session.request("\(port.url)/?sig=hush")
        let response = await request.responseData()
        #expect(response.error?.transferFailure?.code == 7)
        let plain = await request.response()
        let printed = ["\(response)", response.debugDescription, "\(plain)", plain.debugDescription]
        for text in printed {
            #expect(text.contains("REDACTED") && !text.contains("hush"), "\(text)")
        }
        #expect(response.request?.url?.query == "sig=hush", "the request itself is complete")
    }
}
