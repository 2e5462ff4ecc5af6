/** Sends a number every millisecond or so, as soon as the last one came back, and notes how long that took. */
declare const self: Worker
const delays: number[] = []
let running = false

function send(): void {
  if (running) self.postMessage(performance.now())
}

self.onmessage = ({ data }: MessageEvent<'start' | 'stop' | number>) => {
  if (typeof data === 'number') {
    delays.push(performance.now() - data)
    setTimeout(send, 0.5 + Math.random())
  } else if (data === 'start') {
    running = true
    send()
  } else {
    running = false
    self.postMessage(delays)
  }
}
