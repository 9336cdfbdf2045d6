internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Response serializers, without a request.
@Suite struct SerializerTests {
    private struct Post: Codable, Hashable {
        var title: String
    }

    private let failure = URLError(.timedOut)

    @Test(arguments: [204, 205])
    func `a status without content returns an empty value, whatever the body`(status: Int) {
        for data in [nil, Data(), Data("x".utf8)] {
            let head = head(status)
            #expect(
                DataRequest.dataResponseSerializer().serializeResponse(nil, head, data, nil).value == Data()
            )
            #expect(
                DataRequest.stringResponseSerializer().serializeResponse(nil, head, data, nil).value == ""
            )
            let json = DataRequest.jsonResponseSerializer().serializeResponse(nil, head, data, nil)
            #expect(json.value is NSNull)
            let list = DataRequest.propertyListResponseSerializer().serializeResponse(nil, head, data, nil)
            #expect(list.value is NSNull)
        }
    }

    @Test func `the request's error takes precedence`() {
        let (head, data) = (head(204), Data("1".utf8))
        let failures: [(any Error)?] = [
            DataRequest.dataResponseSerializer().serializeResponse(nil, head, data, failure).error,
            DataRequest.stringResponseSerializer().serializeResponse(nil, head, data, failure).error,
            DataRequest.jsonResponseSerializer().serializeResponse(nil, head, data, failure).error,
            DataRequest.propertyListResponseSerializer().serializeResponse(nil, head, data, failure).error,
            DataRequest.decodableResponseSerializer(of: Int.self)
                .serializeResponse(nil, head, data, failure).error,
            DownloadRequest.dataResponseSerializer().serializeResponse(nil, head, nil, failure).error,
        ]
        for error in failures { #expect((error as? URLError)?.code == .timedOut) }
    }

    @Test func `missing data is always an error, and empty data for some serializers`() {
        let data = DataRequest.dataResponseSerializer().serializeResponse
        #expect(serializationFailure(data(nil, head(), nil, nil)) == "inputDataNil")
        #expect(data(nil, head(), Data(), nil).value == Data())
        let string = DataRequest.stringResponseSerializer().serializeResponse
        #expect(serializationFailure(string(nil, head(), nil, nil)) == "inputDataNil")
        #expect(string(nil, head(), Data(), nil).value == "")
        for empty in [nil, Data()] {
            let json = DataRequest.jsonResponseSerializer().serializeResponse(nil, head(), empty, nil)
            #expect(serializationFailure(json) == "inputDataNilOrZeroLength")
            let list = DataRequest.propertyListResponseSerializer().serializeResponse(nil, head(), empty, nil)
            #expect(serializationFailure(list) == "inputDataNilOrZeroLength")
            let value = DataRequest.decodableResponseSerializer(of: Post.self)
                .serializeResponse(nil, head(), empty, nil)
            #expect(serializationFailure(value) == "inputDataNilOrZeroLength")
        }
    }

    @Test func `a body is serialized even without the head of a response`() {
        let data = Data("[1]".utf8)
        #expect(DataRequest.dataResponseSerializer().serializeResponse(nil, nil, data, nil).value == data)
        #expect(DataRequest.stringResponseSerializer().serializeResponse(nil, nil, data, nil).value == "[1]")
        let json = DataRequest.jsonResponseSerializer().serializeResponse(nil, nil, data, nil)
        #expect(json.value as? [Int] == [1])
    }

    @Test func `text uses the given encoding, then the response's charset, then ISO 8859-1`() {
        let data = Data("é".utf8)
        func text(_ encoding: String.Encoding?, _ type: String?) -> String? {
            let head = head(type: type)
            return Request.serializeResponseString(encoding: encoding, response: head, data: data, error: nil)
                .value
        }
        #expect(text(.utf8, "text/plain; charset=iso-8859-1") == "é")
        #expect(text(nil, "text/plain; charset=utf-8") == "é")
        #expect(text(nil, "text/plain; charset=none-such") == "Ã©")
        #expect(text(nil, "text/plain") == "Ã©")
        #expect(text(nil, nil) == "Ã©")
    }

    @Test func `a body that is not valid text is an error that names the encoding`() {
        let serializer = DataRequest.stringResponseSerializer()
        let head = head(type: "text/plain; charset=UTF-8")
        let result = serializer.serializeResponse(nil, head, Data([0xFF]), nil)
        #expect((result.error as? AFError)?.failedStringEncoding == .utf8)
    }

    @Test func `JSON fragments are accepted by default and can be refused`() {
        let data = Data("\"x\"".utf8)
        let any = DataRequest.jsonResponseSerializer().serializeResponse(nil, head(), data, nil)
        #expect(any.value as? String == "x")
        let objects = DataRequest.jsonResponseSerializer(options: []).serializeResponse(
            nil,
            head(),
            data,
            nil
        )
        #expect(serializationFailure(objects) == "jsonSerializationFailed")
        #expect((objects.error as? AFError)?.underlyingError != nil)
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
    func `a property list is parsed in both formats`(
        format: PropertyListSerialization.PropertyListFormat
    ) throws {
        let object: [String: Any] = ["a": [1, 2], "b": "text"]
        let data = try PropertyListSerialization.data(fromPropertyList: object, format: format, options: 0)
        let serializer = DataRequest.propertyListResponseSerializer()
        let list = serializer.serializeResponse(nil, head(), data, nil).value as? [String: Any]
        #expect(list?["a"] as? [Int] == [1, 2])
        #expect(list?["b"] as? String == "text")
        let broken = serializer.serializeResponse(nil, head(), Data("<plist><array>".utf8), nil)
        #expect(serializationFailure(broken) == "propertyListSerializationFailed")
    }

    @Test func `a value is decoded by JSONDecoder or by another decoder`() throws {
        let post = Post(title: "x")
        let json = DataRequest.decodableResponseSerializer(of: Post.self)
        #expect(json.serializeResponse(nil, head(), try JSONEncoder().encode(post), nil).value == post)
        let list: DataResponseSerializer<Post> =
            DataRequest.decodableResponseSerializer(decoder: PropertyListDecoder())
        let data = try PropertyListEncoder().encode(post)
        #expect(list.serializeResponse(nil, head(), data, nil).value == post)
        let other = json.serializeResponse(nil, head(), Data("{}".utf8), nil)
        #expect(serializationFailure(other) == "decodingFailed")
        #expect((other.error as? AFError)?.underlyingError is DecodingError)
    }

    @Test func `a status without content is decoded only as a type with an empty value`() {
        let empty = DataRequest.decodableResponseSerializer(of: Empty.self)
        #expect(empty.serializeResponse(nil, head(204), Data(), nil).value == Empty.value)
        #expect(empty.serializeResponse(nil, head(205), nil, nil).value == Empty.value)
        let unexpected = empty.serializeResponse(nil, head(200), Data(), nil)
        #expect(serializationFailure(unexpected) == "inputDataNilOrZeroLength")
        let post = DataRequest.decodableResponseSerializer(of: Post.self)
        let result = post.serializeResponse(nil, head(204), Data(), nil)
        #expect(serializationFailure(result) == "inputDataNilOrZeroLength")
        let content = Data(#"{"title":"x"}"#.utf8)
        #expect(post.serializeResponse(nil, head(204), content, nil).value == Post(title: "x"))
    }

    @Test func `serializers can be composed`() {
        struct Unreadable: Error {}
        let length = DataResponseSerializer<Int> { request, response, data, error in
            guard error == nil else { return .failure(Unreadable()) }
            let json = DataRequest.jsonResponseSerializer(options: .allowFragments)
            let result = json.serializeResponse(request, response, data, nil)
            guard case .success(let object) = result, let list = object as? [Any] else {
                return .failure(Unreadable())
            }
            return .success(list.count)
        }
        #expect(length.serializeResponse(nil, head(), Data("[1,2]".utf8), nil).value == 2)
        #expect(length.serializeResponse(nil, head(), Data("{}".utf8), nil).error is Unreadable)
        #expect(length.serializeResponse(nil, head(), nil, failure).error is Unreadable)
    }
}

/// Serializers of downloaded files.
@Suite struct DownloadSerializerTests {
    private let directory: ScratchDirectory
    private let file: URL

    init() throws {
        directory = try ScratchDirectory()
        file = URL(fileURLWithPath: directory.file("body"))
    }

    @Test func `a file is serialized like a body`() throws {
        try Data("[1]".utf8).write(to: file)
        let head = head()
        #expect(
            DownloadRequest.dataResponseSerializer().serializeResponse(nil, head, file, nil).value
                == Data("[1]".utf8)
        )
        #expect(
            DownloadRequest.stringResponseSerializer().serializeResponse(nil, head, file, nil).value == "[1]"
        )
        let json = DownloadRequest.jsonResponseSerializer().serializeResponse(nil, head, file, nil)
        #expect(json.value as? [Int] == [1])
        let decoded = DownloadRequest.decodableResponseSerializer(of: [Int].self).serializeResponse(
            nil,
            head,
            file,
            nil
        )
        #expect(decoded.value == [1])
        try PropertyListEncoder().encode([1]).write(to: file)
        let list = DownloadRequest.propertyListResponseSerializer().serializeResponse(nil, head, file, nil)
        #expect(list.value as? [Int] == [1])
    }

    @Test func `a missing file is an error that names it`() {
        let serializer = DownloadRequest.dataResponseSerializer()
        #expect(serializationFailure(serializer.serializeResponse(nil, head(), nil, nil)) == "inputFileNil")
        let missing = serializer.serializeResponse(nil, head(), file, nil)
        #expect(serializationFailure(missing) == "inputFileReadFailed")
        #expect((missing.error as? AFError)?.url == file)
    }

    @Test func `a URL that is not a file URL is not loaded`() async throws {
        let server = try ScriptedServer { _ in .respond("x") }
        let result = DownloadRequest.dataResponseSerializer()
            .serializeResponse(nil, head(), URL(string: server.url), nil)
        #expect(serializationFailure(result) == "inputFileReadFailed")
        #expect(server.requests.isEmpty)
    }
}
