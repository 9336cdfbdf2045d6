internal import Testing

@testable internal import NetwatchTransport

/// Who may begin, and who waits.
@Suite struct WaitingRoomTests {
    private let door = WaitingRoom.Door(pool: .common, origin: "http://a:80")
    private let ids = (0..<8).map { _ in TransferID() }

    /// Returns who may begin at once.
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
        let widened = room.widen(door)
        let again = room.widen(door)
        #expect(widened == [ids[1], ids[2]])
        #expect(again.isEmpty)
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
