// A worker: a hidden tab's own timers are woken once a minute, those of a worker go on.

setInterval(() => postMessage('beat'), 1000)
