/// Values that are taken out in the order they were put in, each in constant time on average.
package struct WaitingLine<Element> {
    private var arrived: [Element] = []
    /// The next one to take last.
    private var leaving: [Element] = []

    package init() {}

    package var isEmpty: Bool { arrived.isEmpty && leaving.isEmpty }

    /// The next one to be taken out.
    package var first: Element? { leaving.last ?? arrived.first }

    package mutating func append(_ element: Element) {
        arrived.append(element)
    }

    package mutating func popFirst() -> Element? {
        if leaving.isEmpty {
            leaving = arrived.reversed()
            arrived = []
        }
        return leaving.popLast()
    }

    /// Takes everything out.
    package mutating func removeAll() -> [Element] {
        defer { self = WaitingLine() }
        return leaving.reversed() + arrived
    }

    /// Takes out what does not belong there any more.
    package mutating func keep(where isKept: (Element) -> Bool) {
        arrived = arrived.filter(isKept)
        leaving = leaving.filter(isKept)
    }
}

extension WaitingLine: Sendable where Element: Sendable {}
