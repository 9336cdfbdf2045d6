internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Malicious bodies. Each must quickly be rejected with an error.
@Suite(.timeLimit(.minutes(5))) struct HostileBodyTests {
    private let list = DataRequest.propertyListResponseSerializer()

    /// A recursive type, with which decoding can have any depth.
    private indirect enum Tree: Decodable {
        case leaf
        case node([Tree])

        init(from decoder: any Decoder) throws {
            guard var container = try? decoder.unkeyedContainer() else {
                self = .leaf
                return
            }
            var children: [Tree] = []
            while !container.isAtEnd { children.append(try container.decode(Tree.self)) }
            self = .node(children)
        }
    }

    @Test(arguments: [("[", "]"), ("{\"a\":", "}")])
    func `JSON with a million levels is refused`(open: String, close: String) {
        let levels = 1_000_000
        let text = String(repeating: open, count: levels) + "1" + String(repeating: close, count: levels)
        let json = DataRequest.jsonResponseSerializer().serializeResponse(nil, head(), Data(text.utf8), nil)
        #expect(serializationFailure(json) == "jsonSerializationFailed")
        let tree = DataRequest.decodableResponseSerializer(of: Tree.self)
            .serializeResponse(nil, head(), Data(text.utf8), nil)
        #expect(serializationFailure(tree) == "decodingFailed")
    }

    @Test(arguments: ["<plist><array>", "(", "{a="])
    func `a property list with a hundred thousand levels is refused`(open: String) {
        let text = "<plist>" + String(repeating: open, count: 100_000)
        for body in [text, String(text.dropFirst(7))] {
            let result = list.serializeResponse(nil, head(), Data(body.utf8), nil)
            #expect(serializationFailure(result) == "propertyListSerializationFailed")
        }
    }

    @Test func `a binary property list that expands exponentially is refused`() {
        let bomb = binaryPropertyList((1...40).map { [$0, $0] })
        let result = list.serializeResponse(nil, head(), bomb, nil)
        #expect(serializationFailure(result) == "propertyListSerializationFailed")
        #expect((result.error as? AFError)?.underlyingError is HostilePropertyList)
        let tree = DataRequest.decodableResponseSerializer(of: Tree.self, decoder: PropertyListDecoder())
            .serializeResponse(nil, head(), bomb, nil)
        #expect((tree.error as? AFError)?.underlyingError is HostilePropertyList)
    }

    @Test func `a binary property list with cycles or too many levels is refused`() {
        let deep = (1...20_000).map { [$0] }
        for containers in [[[0]], [[1], [0]], [[0, 0, 0]], deep] {
            let body = binaryPropertyList(containers)
            let result = list.serializeResponse(nil, head(), body, nil)
            #expect(serializationFailure(result) == "propertyListSerializationFailed")
        }
    }

    @Test func `a binary property list with invalid references is refused quickly`() {
        // A list with 20,000 references to one other list, which has about 160,000 invalid references.
        let references = 20_000
        var body = Data("bplist00".utf8) + [0xAF, 0x12] + number(references, bytes: 4)
        for reference in 1...references { body += number(reference, bytes: 8) }
        let list = body.count
        body += [0xAF, 0x12] + number(body.count, bytes: 4) + Data(repeating: 0xFF, count: body.count * 8)
        let table = body.count
        for offset in [8] + Array(repeating: list, count: references) { body += number(offset, bytes: 4) }
        body += Data([0, 0, 0, 0, 0, 0, 4, 8])
        for value in [references + 1, 0, table] { body += number(value, bytes: 8) }
        let result = self.list.serializeResponse(nil, head(), body, nil)
        #expect(serializationFailure(result) == "propertyListSerializationFailed")
    }

    @Test func `a binary property list with few shared objects is accepted`() {
        let shared = binaryPropertyList((1...10).map { [$0, $0] })
        #expect(list.serializeResponse(nil, head(), shared, nil).isSuccess)
    }

    @Test func `more than a million stored objects are decoded`() throws {
        let numbers = Array(repeating: 1, count: 1_100_000)
        let body = try PropertyListSerialization.data(fromPropertyList: numbers, format: .binary, options: 0)
        #expect((list.serializeResponse(nil, head(), body, nil).value as? [Any])?.count == numbers.count)
    }

    @Test(arguments: UInt64(1)...4)
    func `a damaged binary property list is decoded or refused`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let object: [String: Any] = ["a": [1, "two", Data([3])], "b": ["c": 4.5]]
        let whole = try PropertyListSerialization.data(fromPropertyList: object, format: .binary, options: 0)
        for _ in 0..<1000 {
            var body = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                body[Int.random(in: 6..<body.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) {
                body = body.prefix(Int.random(in: 0...body.count, using: &random))
            }
            let result = list.serializeResponse(nil, head(), body, nil)
            let failures = ["propertyListSerializationFailed", "inputDataNilOrZeroLength"]
            #expect(serializationFailure(result).map(failures.contains) ?? result.isSuccess)
        }
    }

    @Test(arguments: [0x00, 0x07, 0x0F, 0x70, 0x90, 0xB0, 0xC0, 0xE0, 0xF0] as [UInt8])
    func `an unknown object type is refused`(marker: UInt8) {
        let body = binaryPropertyList([[1]], last: [marker, 1])
        let result = list.serializeResponse(nil, head(), body, nil)
        #expect((result.error as? AFError)?.underlyingError is HostilePropertyList)
    }

    @Test(arguments: UInt8(0)...15)
    func `a keyed archive's reference of any length is decoded or refused`(length: UInt8) {
        for filling in [0, 1, 0xFF] as [UInt8] {
            for count in 0...Int(length) + 1 {
                let reference = [0x80 + length] + Array(repeating: filling, count: count)
                let body = binaryPropertyList([[1]], last: reference)
                let result = list.serializeResponse(nil, head(), body, nil)
                let failure = serializationFailure(result)
                #expect(failure.map { $0 == "propertyListSerializationFailed" } ?? result.isSuccess)
            }
        }
    }

    @Test func `a key that is not a string is refused`() {
        // Turns the list into a dictionary with one entry, whose key and value are both the number that follows.
        var body = binaryPropertyList([[1, 1]])
        body[8] = 0xD1
        let result = list.serializeResponse(nil, head(), body, nil)
        #expect((result.error as? AFError)?.underlyingError is HostilePropertyList)
    }

    /// Returns a binary property list of arrays that refer to each other by index. The first array is the top object.
    /// `last` is appended as another object.
    private func binaryPropertyList(_ lists: [[Int]], last: [UInt8] = [0x10, 1]) -> Data {
        var objects = lists.map { list in [UInt8(0xA0 + list.count)] + list.flatMap { number($0, bytes: 4) } }
        objects.append(last)
        var body = Data("bplist00".utf8)
        var offsets: [Int] = []
        for object in objects {
            offsets.append(body.count)
            body += object
        }
        let table = body.count
        for offset in offsets { body += number(offset, bytes: 4) }
        body += Data([0, 0, 0, 0, 0, 0, 4, 4])
        for value in [objects.count, 0, table] { body += number(value, bytes: 8) }
        return body
    }

    private func number(_ value: Int, bytes: Int) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
}
