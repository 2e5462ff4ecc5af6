type Log = { sent(message: string): void; received(message: string): void; note(note: string): void }

/** The browser's WebSocket, with everything that passes shown in the log. */
export function createLoggedSocket(log: Log) {
  return class LoggedSocket extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols)
      this.addEventListener('message', ({ data }) => log.received(String(data)))
      this.addEventListener('close', ({ code, reason }) => {
        log.note(`WebSocket closed (${code}${reason ? `, ${reason}` : ''})`)
      })
    }

    override send(text: string): void {
      super.send(text)
      log.sent(text)
    }
  }
}
