import ClientCore
import Foundation
import FoundationNetworking
import FoundationXML
import NetwatchTestSupport
import Testing

// MARK: Code that a program adds to the client

private enum BackendError: Error {
    case network(error: Error)
    case dataSerialization(error: Error)
    case jsonSerialization(error: Error)
    case xmlSerialization(error: Error)
    case objectSerialization(reason: String)
}

private struct NotXML: Error {}

private protocol ResponseObjectSerializable {
    init?(response: HTTPURLResponse, representation: Any)
}

private protocol ResponseCollectionSerializable {
    static func collection(from response: HTTPURLResponse, withRepresentation representation: Any) -> [Self]
}

extension ResponseCollectionSerializable where Self: ResponseObjectSerializable {
    fileprivate static func collection(
        from response: HTTPURLResponse,
        withRepresentation representation: Any
    ) -> [Self] {
        let items = representation as? [[String: Any]] ?? []
        return items.compactMap { Self(response: response, representation: $0) }
    }
}

extension DataRequest {
    fileprivate static func xmlResponseSerializer() -> DataResponseSerializer<XMLDocument> {
        return DataResponseSerializer { request, response, data, error in
            guard error == nil else { return .failure(BackendError.network(error: error!)) }
            let result = Request.serializeResponseData(response: response, data: data, error: nil)
            guard case .success(let validData) = result else {
                return .failure(BackendError.dataSerialization(error: result.error! as! AFError))
            }
            do {
                let xml = try XMLDocument(data: validData)
                // For data that is not XML, Foundation on Linux returns an empty document instead of an error.
                guard xml.rootElement() != nil else { throw NotXML() }
                return .success(xml)
            } catch {
                return .failure(BackendError.xmlSerialization(error: error))
            }
        }
    }

    @discardableResult
    fileprivate func responseXMLDocument(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping (DataResponse<XMLDocument>) -> Void
    ) -> Self {
        return response(
            queue: queue,
            responseSerializer: DataRequest.xmlResponseSerializer(),
            completionHandler: completionHandler
        )
    }

    @discardableResult
    fileprivate func responseObject<T: ResponseObjectSerializable>(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping (DataResponse<T>) -> Void
    ) -> Self {
        let responseSerializer = DataResponseSerializer<T> { request, response, data, error in
            guard error == nil else { return .failure(BackendError.network(error: error!)) }
            let jsonResponseSerializer = DataRequest.jsonResponseSerializer(options: .allowFragments)
            let result = jsonResponseSerializer.serializeResponse(request, response, data, nil)
            guard case .success(let jsonObject) = result else {
                return .failure(BackendError.jsonSerialization(error: result.error!))
            }
            guard let response = response, let object = T(response: response, representation: jsonObject)
            else { return .failure(BackendError.objectSerialization(reason: "\(jsonObject)")) }
            return .success(object)
        }
        return response(
            queue: queue,
            responseSerializer: responseSerializer,
            completionHandler: completionHandler
        )
    }

    @discardableResult
    fileprivate func responseCollection<T: ResponseCollectionSerializable>(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping (DataResponse<[T]>) -> Void
    ) -> Self {
        let responseSerializer = DataResponseSerializer<[T]> { request, response, data, error in
            guard error == nil else { return .failure(BackendError.network(error: error!)) }
            let jsonSerializer = DataRequest.jsonResponseSerializer(options: .allowFragments)
            let result = jsonSerializer.serializeResponse(request, response, data, nil)
            guard case .success(let jsonObject) = result else {
                return .failure(BackendError.jsonSerialization(error: result.error!))
            }
            guard let response = response else {
                return .failure(BackendError.objectSerialization(reason: "no response"))
            }
            return .success(T.collection(from: response, withRepresentation: jsonObject))
        }
        return response(
            queue: queue,
            responseSerializer: responseSerializer,
            completionHandler: completionHandler
        )
    }
}

private struct User: ResponseObjectSerializable, ResponseCollectionSerializable, Equatable {
    let username: String
    let name: String

    init?(response: HTTPURLResponse, representation: Any) {
        guard
            let username = response.url?.lastPathComponent,
            let representation = representation as? [String: Any],
            let name = representation["name"] as? String
        else { return nil }
        self.username = username
        self.name = name
    }

    init(json: Any) throws {
        guard let object = json as? [String: Any], let name = object["name"] as? String else {
            throw BackendError.objectSerialization(reason: "\(json)")
        }
        username = "json"
        self.name = name
    }
}

/// A function of a program that maps a response to a value of its own.
@discardableResult
private func loadUser(
    from url: String,
    completionHandler: @escaping (DataResponse<User>) -> Void
) -> ClientCore.DataRequest {
    let utilityQueue = DispatchQueue.global(qos: .utility)
    return ClientCore.request(url).responseJSON(queue: utilityQueue) { response in
        let userResponse = response.flatMap { json in
            try User(json: json)
        }
        DispatchQueue.main.async {
            completionHandler(userResponse)
        }
    }
}

// MARK: Tests

@Suite(.timeLimit(.minutes(5))) struct CustomResponsesTests {
    private let server: ScriptedServer

    init() throws {
        server = try ScriptedServer { request in
            switch request.target {
            case "/users": .respond(#"[{"name": "Ada"}, {"nickname": "?"}, {"name": "Bea"}]"#)
            case "/users/ada": .respond(#"{"name": "Ada"}"#)
            case "/close": .close
            default: .respond("{")
            }
        }
    }

    @Test func `a response is mapped`() async throws {
        let url = "\(server.url)/users/ada"
        let (names, status): ([String?], Int?) = await once { done in
            ClientCore.request(url).responseJSON { (response: DataResponse<Any>) in
                let userResponse = response.map { json in
                    try? User(json: json)
                }
                let failed = response.flatMap { _ in
                    try User(json: [])
                }
                done(
                    ([userResponse.value??.name, failed.value?.name], userResponse.response?.statusCode)
                )
            }
        }
        #expect(names == ["Ada", nil])
        #expect(status == 200)
    }

    @Test func `an error thrown by a transform is the response's error`() async throws {
        let response: DataResponse<User> = await once { done in
            loadUser(from: "\(server.url)/users") { done($0) }
        }
        guard case .objectSerialization? = response.error as? BackendError else {
            Issue.record("\(response)")
            return
        }
        #expect(response.data?.isEmpty == false)
    }

    @Test func `a failure is not mapped`() async throws {
        let response: DataResponse<User> = await once { done in
            loadUser(from: "\(server.url)/close") { done($0) }
        }
        #expect(response.error is URLError)
    }

    @Test func `a mapped response can be delivered on another queue`() async throws {
        let user: User? = await once { done in
            loadUser(from: "\(server.url)/users/ada") { response in
                dispatchPrecondition(condition: .onQueue(.main))
                done(response.value)
            }
        }
        #expect(user?.name == "Ada")
    }

    @Test func `a custom serializer can parse XML`() async throws {
        let httpbin = try await HTTPBin.shared()
        let title: String? = await once { done in
            ClientCore.request("\(httpbin.url)/xml").responseXMLDocument { response in
                let root = response.value?.rootElement()
                done(root?.attribute(forName: "title")?.stringValue)
            }
        }
        #expect(title == "Sample Slide Show")
    }

    @Test func `a custom serializer can return its own errors`() async throws {
        let errors = Recorder<String>()
        for path in ["broken", "close"] {
            ClientCore.request("\(server.url)/\(path)").responseXMLDocument { response in
                switch response.error as? BackendError {
                case .xmlSerialization: errors.record("XML")
                case .network(let error): errors.record("network \(error is URLError)")
                default: errors.record("another")
                }
            }
        }
        try await errors.wait { $0.count == 2 }
        #expect(errors.values.sorted() == ["XML", "network true"])
    }

    @Test func `a response is decoded as an object`() async throws {
        let user: User? = await once { done in
            ClientCore.request("\(server.url)/users/ada").responseObject {
                (response: DataResponse<User>) in
                done(response.result.value)
            }
        }
        #expect(user?.username == "ada")
        #expect(user?.name == "Ada")
        let error: Error? = await once { done in
            ClientCore.request("\(server.url)/users").responseObject { (response: DataResponse<User>) in
                done(response.result.error)
            }
        }
        guard case .objectSerialization? = error as? BackendError else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `a response is decoded as a collection`() async throws {
        let queue = DispatchQueue(label: "guide")
        let users: [User]? = await once { done in
            ClientCore.request("\(server.url)/users").responseCollection(queue: queue) {
                (response: DataResponse<[User]>) in
                dispatchPrecondition(condition: .onQueue(queue))
                done(response.result.value)
            }
        }
        #expect(users?.map(\.name) == ["Ada", "Bea"])
        let error: Error? = await once { done in
            ClientCore.request("\(server.url)/broken").responseCollection {
                (response: DataResponse<[User]>) in
                done(response.error)
            }
        }
        guard case .jsonSerialization? = error as? BackendError else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
