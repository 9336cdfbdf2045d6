import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' sections "Creating a Custom Response Serializer" and "Error Strategy".
@Suite(.timeLimit(.minutes(5))) struct CustomSerializerTests {
    private struct Refused: Error {}

    private struct User: ResponseObjectSerializable, ResponseCollectionSerializable, Equatable {
        let name: String

        init(name: String) {
            self.name = name
        }

        init?(response: HTTPURLResponse, representation: Any) {
            guard let name = object(representation)["name"] as? String else { return nil }
            self.name = name
        }
    }

    private func users() throws -> ScriptedServer {
        try ScriptedServer { request in
            switch request.target {
            case "/users/1": .respond(#"{"name": "Ada"}"#)
            case "/users": .respond(#"[{"name": "Ada"}, {"name": "Grace"}]"#)
            default: .respond("[1, 2")
            }
        }
    }

    @Test func `map and flatMap transform the value and keep the rest`() async throws {
        let server = try users()
        let response: DataResponse<Any> = await once {
            ClientCore.request("\(server.url)/users/1").responseJSON(completionHandler: $0)
        }
        let names = response.map { object($0)["name"] as? String }
        #expect(names.value == "Ada")
        #expect(names.response === response.response)
        #expect(names.timeline == response.timeline)
        let failed = response.flatMap { (_: Any) -> Int in throw Refused() }
        #expect(failed.error is Refused)
        #expect(failed.map { $0 + 1 }.error is Refused)
    }

    @Test func `a download's response is mapped`() async throws {
        let server = try users()
        let response = await once {
            ClientCore.download("\(server.url)/users/1").responseJSON(completionHandler: $0)
        }
        let name = response.flatMap { try #require(object($0)["name"] as? String) }
        #expect(name.value == "Ada")
        #expect(name.temporaryURL == response.temporaryURL)
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `a custom serializer accepts empty data, but not missing data`() async throws {
        let count = DataResponseSerializer<Int> { _, response, data, error in
            guard error == nil else { return .failure(error!) }
            let result = Request.serializeResponseData(response: response, data: data, error: nil)
            guard case .success(let validData) = result else { return .failure(result.error!) }
            return .success(validData.count)
        }
        let server = try ScriptedServer()
        let response = await once {
            ClientCore.request(server.url).response(responseSerializer: count, completionHandler: $0)
        }
        #expect(response.value == 0)
        let missing = count.serializeResponse(nil, nil, nil, nil)
        guard case .responseSerializationFailed(.inputDataNil)? = missing.error as? AFError else {
            Issue.record("\(missing)")
            return
        }
    }

    @Test func `a custom serializer can be chained`() async throws {
        let server = try users()
        let lines: DataResponse<[String]> = await once {
            ClientCore.request("\(server.url)/users").responseWords(completionHandler: $0)
        }
        #expect(lines.value == [#"[{"name":"#, #""Ada"},"#, #"{"name":"#, #""Grace"}]"#])
        let offline: DataResponse<[String]> = await once {
            ClientCore.request("http://127.0.0.1:1/").responseWords(completionHandler: $0)
        }
        guard case BackendError.network(let error)? = offline.error else {
            Issue.record("\(String(describing: offline.error))")
            return
        }
        #expect((error as? URLError)?.code == .cannotConnectToHost)
    }

    @Test func `a result is created, transformed and described`() throws {
        func parsed(_ text: String) throws -> Int { try Int(text) ?? { throw Refused() }() }
        let one = Result(value: { try parsed("1") })
        let broken = Result(value: { try parsed("one") })
        #expect(one.value == 1 && broken.error is Refused)
        let text = Result<String, Error>.success("2")
        let two = text.flatMap { try parsed($0) }
        #expect(two.value == 2)
        #expect(two.flatMap { _ in try parsed("two") }.error is Refused)
        #expect(broken.flatMap { _ in 3 }.error is Refused)
        // Swift's own `flatMap` keeps its meaning.
        let nested = text.flatMap { text in Result { try parsed(text) } }
        #expect(nested.value == 2)
        let timedOut = broken.flatMapError { _ in URLError(.timedOut) }
        #expect((timedOut.error as? URLError)?.code == .timedOut)
        #expect(one.description == "SUCCESS" && broken.description == "FAILURE")
        #expect(one.debugDescription == "SUCCESS: 1" && broken.debugDescription == "FAILURE: Refused()")
    }

    @Test func `a custom download serializer reads the file`() async throws {
        let server = try users()
        let length = DownloadResponseSerializer<Int> { _, _, fileURL, error in
            if let error { return .failure(error) }
            return Result { try Data(contentsOf: fileURL ?? { throw Refused() }()).count }
        }
        let response = await once {
            ClientCore.download("\(server.url)/users/1")
                .response(responseSerializer: length, completionHandler: $0)
        }
        #expect(response.value == 15)
        try response.temporaryURL.map(FileManager.default.removeItem(at:))
    }

    @Test func `a custom download serializer uses the standard ones`() async throws {
        let server = try users()
        let name = DownloadResponseSerializer<String> { request, response, fileURL, error in
            DownloadRequest.jsonResponseSerializer().serializeResponse(request, response, fileURL, error)
                .map { object($0)["name"] as? String ?? "" }
        }
        let response = await once {
            ClientCore.download("\(server.url)/users/1")
                .response(responseSerializer: name, completionHandler: $0)
        }
        #expect(response.value == "Ada")
        let file = response.temporaryURL
        let data = DownloadRequest.dataResponseSerializer().serializeResponse(nil, nil, file, nil)
        #expect(data.value == Data(#"{"name": "Ada"}"#.utf8))
        let text = DownloadRequest.stringResponseSerializer(encoding: .utf8).serializeResponse(
            nil,
            nil,
            file,
            nil
        )
        #expect(text.value == #"{"name": "Ada"}"#)
        let list = DownloadRequest.propertyListResponseSerializer().serializeResponse(nil, nil, file, nil)
        #expect((list.error as? AFError)?.isResponseSerializationError == true)
        try file.map(FileManager.default.removeItem(at:))
    }

    @Test func `generic serializers create objects and collections`() async throws {
        let server = try users()
        let one: DataResponse<User> = await once {
            ClientCore.request("\(server.url)/users/1").responseObject(completionHandler: $0)
        }
        #expect(one.value == User(name: "Ada"))
        let all: DataResponse<[User]> = await once {
            ClientCore.request("\(server.url)/users").responseCollection(completionHandler: $0)
        }
        #expect(all.value == [User(name: "Ada"), User(name: "Grace")])
        let broken: DataResponse<User> = await once {
            ClientCore.request("\(server.url)/broken").responseObject(completionHandler: $0)
        }
        guard case BackendError.jsonSerialization(let error)? = broken.error else {
            Issue.record("\(String(describing: broken.error))")
            return
        }
        #expect((error as? AFError)?.isResponseSerializationError == true)
    }

    @Test func `an error can be cast to AFError, which has its reason`() async throws {
        let request = ClientCore.request("")
        let response = await once { request.responseJSON(completionHandler: $0) }
        let error = try #require(response.error as? AFError)
        guard case .invalidURL(let url) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(url as? String == "")
        #expect(error.isInvalidURLError)
    }
}

// MARK: - The guides' error strategy and serializers, for other formats

private enum BackendError: Error {
    case network(error: Error)
    case jsonSerialization(error: Error)
    case objectSerialization(reason: String)
}

private protocol ResponseObjectSerializable {
    init?(response: HTTPURLResponse, representation: Any)
}

private protocol ResponseCollectionSerializable {
    static func collection(from response: HTTPURLResponse, withRepresentation representation: Any) -> [Self]
}

extension ResponseCollectionSerializable where Self: ResponseObjectSerializable {
    static func collection(from response: HTTPURLResponse, withRepresentation representation: Any) -> [Self] {
        (representation as? [Any] ?? []).compactMap { Self(response: response, representation: $0) }
    }
}

extension DataRequest {
    fileprivate static func wordsResponseSerializer() -> DataResponseSerializer<[String]> {
        DataResponseSerializer { _, response, data, error in
            guard error == nil else { return .failure(BackendError.network(error: error!)) }
            let result = Request.serializeResponseData(response: response, data: data, error: nil)
            guard case .success(let validData) = result else { return .failure(result.error!) }
            return .success(String(decoding: validData, as: UTF8.self).split(separator: " ").map(String.init))
        }
    }

    @discardableResult
    fileprivate func responseWords(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping (DataResponse<[String]>) -> Void
    ) -> Self {
        response(
            queue: queue,
            responseSerializer: DataRequest.wordsResponseSerializer(),
            completionHandler: completionHandler
        )
    }

    @discardableResult
    fileprivate func responseObject<T: ResponseObjectSerializable>(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping (DataResponse<T>) -> Void
    ) -> Self {
        let serializer = DataResponseSerializer<T> { _, response, data, error in
            Self.json(response, data, error) { response, json in T(response: response, representation: json) }
        }
        return response(queue: queue, responseSerializer: serializer, completionHandler: completionHandler)
    }

    @discardableResult
    fileprivate func responseCollection<T: ResponseCollectionSerializable>(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping (DataResponse<[T]>) -> Void
    ) -> Self {
        let serializer = DataResponseSerializer<[T]> { _, response, data, error in
            Self.json(response, data, error) { T.collection(from: $0, withRepresentation: $1) }
        }
        return response(queue: queue, responseSerializer: serializer, completionHandler: completionHandler)
    }

    private static func json<T>(
        _ response: HTTPURLResponse?,
        _ data: Data?,
        _ error: Error?,
        _ make: (HTTPURLResponse, Any) -> T?
    ) -> Result<T, Error> {
        guard error == nil else { return .failure(BackendError.network(error: error!)) }
        let serializer = DataRequest.jsonResponseSerializer(options: .allowFragments)
        let result = serializer.serializeResponse(nil, response, data, nil)
        guard case .success(let json) = result else {
            return .failure(BackendError.jsonSerialization(error: result.error!))
        }
        guard let response = response, let value = make(response, json) else {
            return .failure(BackendError.objectSerialization(reason: "JSON of another kind: \(json)"))
        }
        return .success(value)
    }
}
