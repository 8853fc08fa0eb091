use core::ops::{Add, Mul, Sub};

/// Position or direction in space. Positions are in km from the Earth's centre.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Vector {
    /// Component towards the vernal equinox, or Greenwich at time zero.
    pub x: f64,
    /// Component towards 90 degrees east of x on the equator.
    pub y: f64,
    /// Component towards the north pole.
    pub z: f64,
}

impl Vector {
    /// Returns the inner product.
    pub fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    /// Returns the outer product.
    pub fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    /// Returns the length.
    pub fn length(self) -> f64 {
        libm::sqrt(self.dot(self))
    }

    /// Returns the angle to `other` in radians, from 0 to pi.
    pub fn angle_to(self, other: Self) -> f64 {
        let cosine = self.dot(other) / (self.length() * other.length());
        libm::acos(cosine.clamp(-1.0, 1.0))
    }

    /// Returns the vector rotated eastwards about the north pole by an angle in radians.
    pub fn turned(self, angle: f64) -> Self {
        let (sin, cos) = libm::sincos(angle);
        Self { x: cos * self.x - sin * self.y, y: sin * self.x + cos * self.y, z: self.z }
    }
}

impl Add for Vector {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

impl Sub for Vector {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
    }
}

impl Mul<f64> for Vector {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self { x: self.x * factor, y: self.y * factor, z: self.z * factor }
    }
}
