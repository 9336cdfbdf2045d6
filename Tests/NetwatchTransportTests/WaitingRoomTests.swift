internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// Which transfers may begin, and which wait.
@Suite struct WaitingRoomTests {
    private let door = WaitingRoom.Door(pool: .common, origin: "http://a:80")
    private let ids = (0..<8).map { _ in TransferID() }

    /// Returns which transfers may begin immediately.
    private func enter(_ room: inout WaitingRoom, _ priorities: [Float], limit: Int) -> [Bool] {
        zip(ids, priorities).map { room.enter($0, by: door, limit: limit, priority: $1) }
    }

    @Test func `as many begin as there is room for`() {
        var room = WaitingRoom()
        let began = enter(&room, [0.5, 0.5, 0.5], limit: 2)
        #expect(began == [true, true, false])
    }

    @Test func `the more urgent go first, and equal ones in the order in which they came`() {
        var room = WaitingRoom()
        _ = enter(&room, [0.5, 0.25, 0.5, 1, 0.5, 1, 0.25], limit: 1)
        var order: [TransferID] = []
        for _ in 0..<7 { order += room.leave(by: door) }
        #expect(order == [3, 5, 2, 4, 1, 6].map { ids[$0] })
    }

    @Test func `who has given up is passed over`() {
        var room = WaitingRoom()
        _ = enter(&room, [0.5, 0.5, 0.5, 0.5], limit: 1)
        room.giveUp(ids[1], by: door)
        room.giveUp(ids[3], by: door)
        let (next, afterwards) = (room.leave(by: door), room.leave(by: door))
        #expect(next == [ids[2]])
        #expect(afterwards.isEmpty)
    }

    @Test func `doors do not wait for each other`() {
        var room = WaitingRoom()
        let other = WaitingRoom.Door(pool: .make(), origin: door.origin)
        let began = [
            room.enter(ids[0], by: door, limit: 1, priority: 0.5),
            room.enter(ids[1], by: other, limit: 1, priority: 0.5),
        ]
        #expect(began == [true, true])
    }

    @Test func `a host that takes many transfers over one connection has more room`() {
        var room = WaitingRoom()
        _ = enter(&room, [0.5, 0.5, 0.5], limit: 1)
        let opened = room.open(door)
        #expect(opened.isEmpty)
        let widened = room.widen(door)
        let again = room.widen(door)
        #expect(widened == [ids[1], ids[2]])
        #expect(again.isEmpty)
    }

    @Test(arguments: [true, false])
    func `a scout goes alone until it is connected or has failed`(isConnected: Bool) {
        var room = WaitingRoom()
        let began = ids.prefix(4).map {
            room.enter($0, by: door, limit: 2, priority: 0.5, needsScout: true)
        }
        #expect(began == [true, false, false, false])
        let next = isConnected ? room.open(door) : room.leave(by: door)
        #expect(next == (isConnected ? [ids[1]] : [ids[1], ids[2]]))
    }

    @Test(arguments: (0..<50).map(UInt64.init)) func `a room that everybody has left is empty`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var room = WaitingRoom()
        var inside: [TransferID] = []
        var waiting: [TransferID] = []
        for _ in 0..<200 {
            var admitted: [TransferID] = []
            switch Int.random(in: 0..<6, using: &generator) {
            case 0 where !inside.isEmpty:
                inside.removeFirst()
                admitted = room.leave(by: door)
            case 1 where !waiting.isEmpty:
                room.giveUp(waiting.remove(at: Int.random(in: waiting.indices, using: &generator)), by: door)
            case 2: admitted = room.open(door)
            case 3: admitted = room.widen(door)
            default:
                let id = TransferID()
                let begins = room.enter(id, by: door, limit: 3, priority: 0.5, needsScout: true)
                if begins { inside.append(id) } else { waiting.append(id) }
            }
            inside += admitted
            waiting.removeAll(where: admitted.contains)
        }
        for id in waiting { room.giveUp(id, by: door) }
        for _ in inside { _ = room.leave(by: door) }
        #expect(room.isEmpty, "NETWATCH_SEED=\(seed)")
    }

    @Test func `a line of those who have given up does not grow`() {
        var room = WaitingRoom()
        _ = room.enter(ids[0], by: door, limit: 1, priority: 0.5)
        _ = room.enter(ids[1], by: door, limit: 1, priority: 0.1)
        for _ in 0..<10_000 {
            let id = TransferID()
            _ = room.enter(id, by: door, limit: 1, priority: 0.5)
            room.giveUp(id, by: door)
        }
        #expect(room.places(at: door) < 100)
        let next = room.leave(by: door)
        #expect(next == [ids[1]])
    }
}
