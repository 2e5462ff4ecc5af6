import type { Page } from 'playwright-core'

/** Colours of a drawn person and of the room behind. */
export type Portrait = {
  wall: [string, string]
  lamp: string
  skin: string
  shade: string
  hair: string
  long: boolean
  shirt: string
}

export const portraits = {
  agent: {
    wall: ['#f3dfc9', '#d9a878'],
    lamp: '#fff3df',
    skin: '#e2a983',
    shade: '#c98c66',
    hair: '#3b2417',
    long: false,
    shirt: '#24556b',
  },
  customer: {
    wall: ['#bfe3dc', '#4c9c95'],
    lamp: '#eafff8',
    skin: '#a9714b',
    shade: '#8d5a38',
    hair: '#1d1516',
    long: true,
    shirt: '#f2c14e',
  },
} satisfies Record<string, Portrait>

/**
 * For the picture in the documents: instead of Chromium's green test pattern the camera shows a drawn person. The
 * microphone stays the fake device's, and everything behind the camera is the real thing.
 */
export async function drawAsCamera(page: Page, portrait: Portrait): Promise<void> {
  await page.addInitScript((portrait) => {
    const canvas = document.createElement('canvas')
    canvas.width = 1280
    canvas.height = 720
    const pen = canvas.getContext('2d') as CanvasRenderingContext2D

    const fill = (colour: string | CanvasGradient, path: () => void) => {
      pen.fillStyle = colour
      pen.beginPath()
      path()
      pen.fill()
    }
    const ellipse = (colour: string, x: number, y: number, rx: number, ry: number) =>
      fill(colour, () => pen.ellipse(x, y, rx, ry, 0, 0, Math.PI * 2))

    function room(): void {
      const wall = pen.createLinearGradient(0, 0, 1280, 720)
      wall.addColorStop(0, portrait.wall[0])
      wall.addColorStop(1, portrait.wall[1])
      fill(wall, () => pen.rect(0, 0, 1280, 720))
      const light = pen.createRadialGradient(400, 60, 0, 400, 60, 620)
      light.addColorStop(0, portrait.lamp)
      light.addColorStop(1, `${portrait.lamp}00`)
      fill(light, () => pen.rect(0, 0, 1280, 720))
      pen.globalAlpha = 0.16
      fill('#12333a', () => pen.roundRect(790, 70, 190, 250, 12))
      fill('#12333a', () => pen.roundRect(300, 470, 110, 250, 12))
      pen.globalAlpha = 0.3
      fill('#ffffff', () => pen.roundRect(806, 86, 158, 218, 6))
      pen.globalAlpha = 1
    }

    function face(blink: boolean): void {
      for (const x of [592, 688]) {
        ellipse('#1d1718', x, 322, 10, blink ? 2 : 12)
        if (!blink) ellipse('#ffffff', x + 3, 318, 3, 3)
        fill(portrait.hair, () => pen.roundRect(x - 24, 288, 48, 8, 4))
      }
      pen.lineCap = 'round'
      pen.lineWidth = 6
      pen.strokeStyle = portrait.shade
      pen.beginPath()
      pen.moveTo(644, 330)
      pen.quadraticCurveTo(656, 362, 636, 366)
      pen.stroke()
      fill('#fffaf5', () => {
        pen.moveTo(596, 396)
        pen.quadraticCurveTo(640, 408, 684, 396)
        pen.quadraticCurveTo(640, 450, 596, 396)
      })
    }

    function person(seconds: number): void {
      pen.save()
      pen.translate(Math.sin(seconds * 0.9) * 6, Math.sin(seconds * 1.7) * 4)
      if (portrait.long) fill(portrait.hair, () => pen.roundRect(496, 170, 288, 400, 140))
      fill(portrait.shirt, () => pen.roundRect(400, 520, 480, 320, 150))
      fill(portrait.shade, () => pen.roundRect(588, 420, 104, 150, 50))
      fill(portrait.skin, () => pen.ellipse(640, 536, 74, 50, 0, 0, Math.PI))
      ellipse(portrait.skin, 640, 326, 118, 146)
      for (const x of [524, 756]) ellipse(portrait.skin, x, 338, 18, 30)
      fill(portrait.hair, () => {
        pen.moveTo(514, 330)
        pen.bezierCurveTo(500, 130, 780, 130, 766, 330)
        pen.bezierCurveTo(750, 250, 720, 232, 660, 240)
        pen.bezierCurveTo(610, 246, 548, 236, 514, 330)
      })
      face(seconds % 3.2 < 0.14)
      pen.restore()
    }

    const draw = (now: number) => {
      room()
      person(now / 1000)
      requestAnimationFrame(draw)
    }
    requestAnimationFrame(draw)

    const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices)
    navigator.mediaDevices.getUserMedia = async (constraints = {}) => {
      const stream = constraints.audio ? await real({ ...constraints, video: false }) : new MediaStream()
      if (constraints.video) for (const track of canvas.captureStream(30).getTracks()) stream.addTrack(track)
      return stream
    }
  }, portrait)
}
