/// The kind of work that a connection does. Each class has its own limit, so one class cannot starve another.
///
/// A connection holds a slot of a class from the moment its request is complete until the response is ready. An upload
/// holds a slot of ``upload`` while its body is read. At all other times a connection holds no slot.
package enum ConnectionClass: String, Hashable, Sendable, CaseIterable {
    /// Requests to which the service responds immediately.
    case call
    /// `POST /v1/requests`, which may wait for a first attempt or for space in the queue.
    case send
    /// Requests that wait for an event, or that read or change much of the store.
    case wait
    /// Requests with a body longer than ``ControlServer/Limits/smallBodyBytes`` or of unknown length, until the body is
    /// complete. Then they enter the class of their route. Otherwise requests that wait for their servers would keep
    /// the slots of uploads.
    case upload
}
