internal import NetwatchEventLoop

// Begins and ends the subscriptions to targets.
extension MonitorCore {
    func subscribe(_ subscriber: WatchedTarget.Subscriber, to key: WatchKey) {
        if let target = targets[key] {
            target.add(subscriber)
            if let published = target.hold.published { outbox.put(published, for: subscriber) }
            outbox.deliver()
        } else {
            begin(key, subscriber)
        }
    }

    private func begin(_ key: WatchKey, _ subscriber: WatchedTarget.Subscriber) {
        let now = self.now
        let hadAddresses = key.name.flatMap { names[$0] }?.resolution.addresses.isEmpty == false
        let name = names.add(key, now: now)
        let target = WatchedTarget(key, settle: configuration.settle, name: name, subscriber: subscriber)
        targets[key] = target
        switch key.target {
        case .general:
            assign(configuration.generalAddresses, to: target)
        case .host(let host):
            assign(host.knownAddresses ?? name?.resolution.addresses ?? [], to: target)
        }
        let earlier = hadAddresses ? [] : name.map { assignAddresses(of: $0, exceptTo: target) } ?? []
        if let name, !hadAddresses, !name.resolution.isInProgress { resolve(name) }
        refreshMarked(now: now)
        updateStatus(of: target, now: now)
        updateStatuses(of: earlier, now: now)
        finish()
    }

    func unsubscribe(_ id: UInt64, from key: WatchKey) {
        guard let target = targets[key] else { return }
        target.remove(id)
        guard target.subscribers.isEmpty, target !== general else { return }
        targets[key] = nil
        assign([], to: target)
        wakeUps.set(target, nil)
        if let name = target.name { names.remove(key, from: name) }
    }

    /// Returns the last published status. For a target without one, returns `unknown` with the reason `resolving`.
    func status(of key: WatchKey) -> PathStatus {
        let resolving = TargetVerdict(.unknown(.resolving))
        return targets[key]?.hold.published
            ?? PathStatus(target: key.target, verdict: resolving, pathGeneration: 0)
    }

    /// Replaces the addresses of a target.
    func assign(_ addresses: [IPAddress], to target: WatchedTarget) {
        self.addresses.assign(addresses, to: target, connection?.events, now: now)
    }
}
