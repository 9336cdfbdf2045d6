/// The kind of work that a connection does. Each class has its own limit, so one class cannot starve another.
///
/// A connection belongs to a class from the moment its request is complete until the response is ready. While a long
/// body is read, it belongs to ``upload``. Before and after that it takes no slot of any class.
package enum ConnectionClass: String, Hashable, Sendable, CaseIterable {
    /// Requests that are answered immediately.
    case call
    /// `POST /v1/requests`, which may wait for a first attempt or for space in the queue.
    case send
    /// Requests that wait for an event, or that scan much of the store.
    case wait
    /// Requests of any kind with a body longer than ``ControlServer/Limits/smallBodyBytes`` or of unknown length, until
    /// the body is complete.
    case upload
}
