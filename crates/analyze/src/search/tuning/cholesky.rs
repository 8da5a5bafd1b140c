//! Positive definite matrices and their Cholesky factors.

/// The factor L of a matrix L·Lᵀ, by rows.
#[derive(Clone, Debug)]
pub(super) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// The factor of a symmetric matrix, by rows; `None` unless it is positive definite.
    pub(super) fn of(mut matrix: Vec<f64>, size: usize) -> Option<Cholesky> {
        for row in 0..size {
            for column in 0..=row {
                let (one, other) = (&matrix[row * size..], &matrix[column * size..]);
                let product = dot(&one[..column], &other[..column]);
                let rest = matrix[row * size + column] - product;
                matrix[row * size + column] = if row == column {
                    if rest.is_nan() || rest <= 0.0 {
                        return None;
                    }
                    rest.sqrt()
                } else {
                    rest / matrix[column * size + column]
                };
            }
        }
        Some(Cholesky { size, lower: matrix })
    }

    /// The solution x of L·x = b.
    pub(super) fn forward(&self, mut b: Vec<f64>) -> Vec<f64> {
        for row in 0..self.size {
            let known = dot(&self.row(row)[..row], &b[..row]);
            b[row] = (b[row] - known) / self.row(row)[row];
        }
        b
    }

    /// Half the logarithm of the matrix's determinant.
    pub(super) fn half_log_determinant(&self) -> f64 {
        (0..self.size).map(|row| self.row(row)[row].ln()).sum()
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.lower[row * self.size..(row + 1) * self.size]
    }
}

/// The inner product.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
