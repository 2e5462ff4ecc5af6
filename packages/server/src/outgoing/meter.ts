import type { Duplex } from 'node:stream'

/**
 * How much of an answer is read [HOOK4]. The bytes of a connection are counted before the HTTP parser sees them, because the
 * parser reads some of them without end: informational answers, empty lines before a status, the framing of chunks.
 *
 *   const meters = createMeters()
 *   meters.add(socket)                            each new connection
 *   meters.begin(socket, 64 * 1024, onExceeded)   each request on it
 *   meters.end(socket)                            the connection waits for the next request
 */
export interface Meters {
  add(socket: Duplex): void
  /** The byte after the last of `bytes` calls `onExceeded` and ends the connection. */
  begin(socket: Duplex, bytes: number, onExceeded: () => void): void
  /** Nobody asked for what comes from now on: the first byte ends the connection. */
  end(socket: Duplex): void
}

interface Meter {
  left: number
  onExceeded: () => void
}

/** One read of a socket may bring 512 KiB. The parser gets them in pieces and can be stopped between two. */
const pieceBytes = 0.5 * 1024
const nobody = () => {}

export function createMeters(): Meters {
  const meters = new WeakMap<Duplex, Meter>()

  function read(socket: Duplex, meter: Meter, bytes: Buffer, pass: (piece: Buffer) => void): void {
    for (let at = 0; at < bytes.length && !socket.destroyed; ) {
      const piece = bytes.subarray(at, at + Math.min(pieceBytes, meter.left))
      if (piece.length === 0) {
        meter.onExceeded()
        socket.destroy()
        return
      }
      at += piece.length
      meter.left -= piece.length
      pass(piece)
    }
  }

  return {
    add(socket) {
      const meter: Meter = { left: 0, onExceeded: nobody }
      meters.set(socket, meter)
      // Without a listener an error ends the process, and node:http removes its own after a 101.
      socket.on('error', nobody)
      const emit = socket.emit.bind(socket)
      socket.emit = (event: string | symbol, ...values: unknown[]) => {
        if (event !== 'data' || !Buffer.isBuffer(values[0])) return emit(event, ...values)
        read(socket, meter, values[0], (piece) => emit('data', piece))
        return true
      }
    },
    begin(socket, bytes, onExceeded) {
      const meter = meters.get(socket)
      if (meter === undefined) throw new Error('no such connection')
      Object.assign(meter, { left: bytes, onExceeded })
    },
    end(socket) {
      const meter = meters.get(socket)
      if (meter !== undefined) Object.assign(meter, { left: 0, onExceeded: nobody })
    },
  }
}
