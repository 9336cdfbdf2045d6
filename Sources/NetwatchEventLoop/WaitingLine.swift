/// Values that are taken out in the order they were put in, each in constant time on average.
struct WaitingLine<Element> {
    private var arrived: [Element] = []
    /// The next one to take last.
    private var leaving: [Element] = []

    mutating func append(_ element: Element) {
        arrived.append(element)
    }

    mutating func popFirst() -> Element? {
        if leaving.isEmpty {
            leaving = arrived.reversed()
            arrived = []
        }
        return leaving.popLast()
    }

    /// Takes everything out.
    mutating func removeAll() -> [Element] {
        defer { self = WaitingLine() }
        return leaving.reversed() + arrived
    }
}
