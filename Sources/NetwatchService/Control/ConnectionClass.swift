/// What a connection is used for. Each class has a limit of its own, so that one cannot lock out another.
///
/// A connection has a class from the moment its request is complete until the response is ready, and the class
/// ``upload`` while a long body is read. Before and after that it takes no slot of a class.
package enum ConnectionClass: String, Hashable, Sendable, CaseIterable {
    /// Requests that are answered at once.
    case call
    /// `POST /v1/requests`, which may wait for a first attempt or for room in the queue.
    case send
    /// Requests that are answered when something has happened, or when much has been looked through.
    case wait
    /// Requests of any kind whose body is longer than ``ControlServer/Limits/smallBodyBytes``, or of unknown length,
    /// until the body is complete.
    case upload
}
