internal import Foundation
internal import Testing

@testable internal import OfflineQueue

@Suite
struct UUIDTests {
    @Test
    func `an id contains its creation time, version and variant`() throws {
        let id = UUIDv7.make(at: Timestamp(milliseconds: 0x0123_4567_89ab))
        try #require(UUID(uuidString: id) != nil)
        #expect(id.hasPrefix("01234567-89ab-7"))
        #expect("89ab".contains(Array(id)[19]))
        #expect(id == id.lowercased())
    }

    @Test
    func `a random id contains its version and variant, and all random ids differ`() throws {
        let ids = (0..<1000).map { _ in UUIDv4.make() }
        for id in ids {
            let bytes = try #require(UUID(uuidString: id)).uuid
            #expect(bytes.6 >> 4 == 4)
            #expect(bytes.8 >> 6 == 2)
        }
        #expect(Set(ids).count == ids.count)
    }

    @Test
    func `every random bit has both values in some id`() throws {
        let ids = try (0..<200).map { _ in try #require(UUID(uuidString: UUIDv4.make())).uuid }
        let halves = ids.map { id in withUnsafeBytes(of: id) { $0.map { UInt8($0) } } }
        let ones = halves.reduce([UInt8](repeating: 0, count: 16)) { zip($0, $1).map { $0 | $1 } }
        let zeros = halves.reduce([UInt8](repeating: 0xff, count: 16)) { zip($0, $1).map { $0 & $1 } }
        #expect(ones == [255, 255, 255, 255, 255, 255, 0x4f, 255, 0xbf, 255, 255, 255, 255, 255, 255, 255])
        #expect(zeros == [0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0])
    }
}
