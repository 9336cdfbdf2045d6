import ClientCore
import Foundation
import OfflineQueue

let queue = try await OfflineQueue(configuration: .init(directory: "/var/lib/myapp/queue"))
try await queue.start()

let url = "https://example.com/orders"
var request = QueueRequest(method: "POST", url: url, body: Data(#"{"product":17}"#.utf8))
request.headers = [.init(name: "Content-Type", value: "application/json")]
let receipt = try await queue.enqueue(request)
// The request is on disk now. Every attempt to deliver it sends the same Idempotency-Key.
print(receipt.id, receipt.durability)
// The queue delivers while the program runs, and continues when it runs again.
let result = try await queue.result(of: receipt.id, within: .seconds(60))
print(result?.summary.state ?? .pending)
// `send` also tries a request immediately. It returns the response, or the reason why the request waits.
if case .queued(_, let reason) = try await queue.send(QueueRequest(method: "GET", url: url)) { print(reason) }
